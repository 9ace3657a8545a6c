import { Histogram, type Registry } from 'prom-client';

/** How often the delay is measured, in milliseconds. */
const EVERY_MS = 100;

const BUCKETS_S = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

/**
 * Measures how late timers come, ten times a second. The default metrics say it, too, but as percentiles that begin
 * anew with every scrape, whoever scrapes, and that count the ten milliseconds between two samples as delay.
 *
 * @returns a function that ends it
 */
export function measureEventLoopDelay(registry: Registry): () => void {
  const delay = new Histogram({
    name: 'partner_app_event_loop_delay_seconds',
    help: 'How late a timer comes, measured ten times a second.',
    buckets: BUCKETS_S,
    registers: [registry],
  });
  let dueAt = performance.now() + EVERY_MS;
  const timer = setInterval(() => {
    const now = performance.now();
    delay.observe(Math.max(0, now - dueAt) / 1_000);
    dueAt = now + EVERY_MS;
  }, EVERY_MS).unref();
  return () => clearInterval(timer);
}
