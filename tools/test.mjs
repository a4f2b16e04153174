// npm test: sets everything up and runs every check there is; the last line counts them. Arguments go to jest:
// `npm test -- libs/db`, `npm test -- -t 'ignores a report'`.
import './check-node.mjs';

const { test } = await import('./test/main.mjs');
process.exit(await test(process.argv.slice(2)));
