/** Headers of a NATS message between services. */
export const HEADERS = {
  /** The caller, signed by authz. */
  passport: 'Wop-Passport',
  /** Milliseconds that are left for the answer. Remaining time, not a date: clocks of hosts may differ. */
  deadline: 'Wop-Deadline',
  /** Subject on which the asker wants to hear every second that the handler is alive. */
  heartbeat: 'Wop-Heartbeat',
  traceparent: 'traceparent',
  tracestate: 'tracestate',
} as const;
