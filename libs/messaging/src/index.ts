export { AuditTrail } from './audit-trail.js';
export { Bell } from './bell.js';
export { Bus, type CallOptions } from './bus.js';
export * from './exchange/index.js';
export { From, FromPassport } from './from.decorator.js';
export { Handle } from './handle.decorator.js';
export { MessagingModule } from './messaging.module.js';
export { MESSAGING_OPTIONS, type MessagingOptions, Nats } from './nats.js';
export { Passports } from './passports.js';
