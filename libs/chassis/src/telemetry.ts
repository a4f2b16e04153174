type Stop = () => Promise<void>;

let stop: Stop | undefined;

/** The exporter, where there is one, leaves here how it is ended. */
export function onTelemetryStop(work: Stop): void {
  stop = work;
}

/** Sends what is still held back; a collector that is away never holds up the end of a service. */
export async function stopTelemetry(): Promise<void> {
  await stop?.().catch(() => {});
}
