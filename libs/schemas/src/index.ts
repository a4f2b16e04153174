export { isUsableSchema, schemaProblem, type SchemaProblem } from './schemas.js';
