import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { secretMatcher } from '../../src/web/secret-matcher.ts';

test('a secret matches itself alone, whatever its length and letters', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (secret, given) => {
      const { matches } = secretMatcher(secret);
      expect(matches(secret)).toBe(true);
      expect(matches(given)).toBe(Buffer.from(given).equals(Buffer.from(secret)));
      for (const near of [`${secret}\0`, ` ${secret}`, secret.slice(1), secret.slice(0, -1)]) {
        expect(matches(near)).toBe(Buffer.from(near).equals(Buffer.from(secret)));
      }
    }),
  );
});

test('what is compared has one length, says nothing of its secret, and is another in every process', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 2_000 }), (given) => {
      const [one, other] = [secretMatcher('secret'), secretMatcher('secret')];
      expect(one.digest(given).length).toBe(32);
      expect(one.digest(given).equals(one.digest(given))).toBe(true);
      expect(one.digest(given).equals(other.digest(given))).toBe(false);
    }),
  );
});

/** The code of a file, without comments and texts. */
function codeOf(path: string): string {
  return readFileSync(join(import.meta.dirname, '../..', path), 'utf8').replace(
    /\/\*[\s\S]*?\*\/|\/\/.*|'(?:\\.|[^'\\\n])*'/g,
    '',
  );
}

/** The lines of the code that name this. */
const uses = (code: string, name: string) =>
  code
    .split('\n')
    .filter((line) => new RegExp(`\\b${name}\\b`).test(line))
    .map((line) => line.trim());

test('the operator’s password and what is given for it go into that comparison and nowhere else', () => {
  const gate = codeOf('src/web/operator-gate.ts');
  expect(uses(gate, 'password')).toEqual(['password: string,', 'const right = secretMatcher(password);']);
  expect(uses(gate, 'given')).toEqual([
    'const given = passwordOf(req.get());',
    'if (given === undefined) throw passwordWanted();',
    'if (!right.matches(given)) throw passwordWanted();',
  ]);
  const matcher = codeOf('src/web/secret-matcher.ts');
  expect(uses(matcher, 'matches').at(-1)).toContain('timingSafeEqual(digest(given), expected)');
  expect(matcher).not.toMatch(/==|\.equals|\.compare|\.length/);
});
