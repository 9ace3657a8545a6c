interface Service {
  listTags(): Promise<unknown>;
}

/** Waits at the gate of the test, then makes as many calls at once as the gate says. */
export async function onChanges({ resource }: { resource: string }, { service }: { service: Service }) {
  const gate = await fetch(`${process.env.TEST_GATE}/${resource}/${process.pid}`);
  const calls = Number(await gate.text());
  await Promise.all(Array.from({ length: calls }, () => service.listTags()));
}
