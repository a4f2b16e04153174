// What the services say, on the terminal: everything is in .dev/logs, only warnings and errors are shown here.
const SHOWN = new Set(['warn', 'error', 'fatal']);

export function terminalLines({ isVerbose }) {
  return (process, stream, text) => {
    const entry = parse(text);
    const isShown = entry ? SHOWN.has(entry.level) : stream === 'stderr' && !SPEAKS_ON_STDERR.has(process.service);
    if (isVerbose || isShown) console.log(`[${process.name}] ${entry ? describe(entry) : text}`);
  };
}

/** These write their whole log there, whatever it says. */
const SPEAKS_ON_STDERR = new Set(['postgres', 'nats', 'everything']);

function parse(text) {
  if (!text.startsWith('{')) return undefined;
  try {
    const entry = JSON.parse(text);
    return typeof entry.level === 'string' ? entry : undefined;
  } catch {
    return undefined;
  }
}

/** `{level, message, error?, …}`, as libs/chassis writes it. */
function describe({ level, message, context, error, err = error }) {
  const cause = typeof err === 'string' ? err : err?.message;
  return [level, context && `${context}:`, message, cause && cause !== message && `(${cause})`].filter(Boolean).join(' ');
}
