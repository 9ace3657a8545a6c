import { ServiceError } from '../../src/service/errors.ts';

/** The ServiceError that a promise rejects with; throws anything else. */
export async function failureOf(call: Promise<unknown>): Promise<ServiceError> {
  const error = await call.then(
    () => new Error('the call succeeded'),
    (reason: unknown) => reason,
  );
  if (error instanceof ServiceError) return error;
  throw error;
}
