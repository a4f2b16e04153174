// Preloaded: `node --import @isthmus/chassis/otel dist/main.js`, so that libraries are instrumented before they are loaded.
// The exporter is loaded only when somebody listens: it costs memory in each of five processes.
import { readTelemetry } from './config.js';
import { installPropagation } from './tracing.js';

installPropagation();
const telemetry = readTelemetry();
if (telemetry.traces || telemetry.metrics) {
  const { startExport } = await import('./otel-export.js');
  await startExport(telemetry);
}
