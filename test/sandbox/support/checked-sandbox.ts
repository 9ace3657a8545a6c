import { afterEach, expect } from 'vitest';
import { HEADER } from '../../../src/contract/headers.ts';
import { createSandbox, type Sandbox, type SandboxOptions } from '../../../src/sandbox/sandbox.ts';
import { descriptionOf } from './description.ts';

const wrong: string[] = [];

afterEach(() => {
  expect(wrong.splice(0), 'answers that are not as the description says').toEqual([]);
});

/**
 * A sandbox of which every answer must be as the description says, whoever asked; the test fails otherwise. Answers that
 * an ordered fault replaces are left out.
 *
 * @param furtherTiers of guards that the test adds: the service that is described does not have them
 */
export function createCheckedSandbox(
  options: SandboxOptions = {},
  furtherTiers: readonly string[] = [],
): Promise<Sandbox> {
  const description = descriptionOf(options);
  return createSandbox({
    ...options,
    onAnswer({ method, url, answer: { status, headers, body } }) {
      const checked = new Headers(headers);
      if (furtherTiers.includes(checked.get(HEADER.tier) ?? '')) checked.delete(HEADER.tier);
      const exchange = { method, url, status, headers: checked, body: String(body) };
      const problems = description.problems(exchange);
      if (problems.length > 0) wrong.push(`${method} ${url} (${status}): ${problems.join('; ')}`);
    },
  });
}
