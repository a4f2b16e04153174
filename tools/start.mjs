// npm start: sets everything up, runs the stack, does the main job once, keeps serving.
import './check-node.mjs';

const { start } = await import('./start/main.mjs');
process.exit(await start(process.argv.slice(2)));
