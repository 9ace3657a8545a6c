interface Service {
  listTags(): Promise<unknown>;
}

/** Calls the service for contacts as fast as it is let, a hundred at a time, until the process ends. */
export async function onChanges(
  { resource }: { resource: string },
  { service, signal }: { service: Service; signal: AbortSignal },
) {
  if (resource !== 'contacts') return;
  const call = async () => {
    while (!signal.aborted) await service.listTags();
  };
  await Promise.all(Array.from({ length: 100 }, call));
}
