import type { Expression, ExpressionBuilder, SqlBool } from 'kysely';
import type { Schema } from './schema.ts';

/**
 * That an instance is in an access generation still: whoever saw an earlier one must not act on what others see by now.
 *
 * @param generation undefined for whichever it is in
 */
export function isInGeneration(
  eb: ExpressionBuilder<Schema, 'instances'>,
  generation: number | undefined,
): Expression<SqlBool> {
  return eb('access_generation', '=', generation ?? eb.ref('access_generation'));
}
