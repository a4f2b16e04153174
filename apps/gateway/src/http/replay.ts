import type { FastifyReply } from 'fastify';

/** Says whether an earlier request with the same key was answered again. Never empty: suites read the word. (wire §8.1) */
export const markReplay = (reply: FastifyReply, replayed: boolean): void => {
  void reply.header('openwop-Idempotent-Replay', String(replayed));
};
