export type { Headers as ExchangeHeaders } from './frames.js';
export { type ExchangeReply, type ExchangeRequest, openExchange } from './open-exchange.js';
export {
  type ExchangeContext,
  type ExchangeHandler,
  type ExchangeServer,
  serveExchanges,
  type TunnelledRequest,
  type WholeResponse,
  wasCancelled,
} from './serve-exchanges.js';
