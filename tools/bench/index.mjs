// npm run bench: starts what it needs, measures, prints a table, writes JSON, stops everything.
import '../check-node.mjs';

const { bench } = await import('./main.mjs');
process.exit(await bench(process.argv.slice(2)));
