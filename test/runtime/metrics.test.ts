import { expect, it } from 'vitest';
import { createMetrics } from '../../src/runtime/metrics.ts';

it('writes what was counted as text for Prometheus', async () => {
  const metrics = createMetrics();
  metrics.serviceRequests.inc({ route: '/contacts', outcome: 'ok' });
  metrics.pages.inc({ resource: 'contacts' });
  metrics.records.inc({ resource: 'contacts' }, 100);
  metrics.runs.inc({ resource: 'contacts', outcome: 'finished' });
  metrics.tokenRefreshes.inc({ outcome: 'rotated' });
  metrics.serviceRequestSeconds.observe({ route: '/contacts' }, 0.04);
  metrics.httpRequestSeconds.observe({ method: 'GET', route: '/', status: 200 }, 0.002);
  const text = await metrics.registry.metrics();
  for (const line of [
    'service_requests_total{route="/contacts",outcome="ok"} 1',
    'sync_pages_total{resource="contacts"} 1',
    'sync_records_total{resource="contacts"} 100',
    'sync_runs_total{resource="contacts",outcome="finished"} 1',
    'token_refreshes_total{outcome="rotated"} 1',
    'service_request_duration_seconds_bucket{le="0.05",route="/contacts"} 1',
    'http_request_duration_seconds_count{method="GET",route="/",status="200"} 1',
    'process_cpu_seconds_total',
  ]) {
    expect(text).toContain(line);
  }
});

it('shares nothing between two of them', async () => {
  const one = createMetrics();
  const other = createMetrics();
  one.pages.inc({ resource: 'contacts' });
  expect(await other.registry.metrics()).not.toContain('sync_pages_total{');
});
