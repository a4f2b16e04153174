export type { Headers as ExchangeHeaders } from './frames.js';
export { type ExchangeReply, type ExchangeRequest, openExchange } from './open-exchange.js';
export {
  type ExchangeContext,
  type ExchangeHandler,
  type ExchangeServer,
  serveExchanges,
  type TunnelledRequest,
  wasCancelled,
  type WholeResponse,
} from './serve-exchanges.js';
