export interface DemoCompany {
  id: string;
  name: string;
  teammates: { id: string; name: string; is_admin: boolean }[];
  /** Records by resource. */
  counts: Record<string, number>;
}

/** A request in the sandbox's journal. */
export interface SeenRequest {
  path: string;
  status: number;
  company_id: string | null;
}

/** The sandbox's companies, the smallest first. */
export async function listCompanies(sandboxUrl: string): Promise<DemoCompany[]> {
  const { companies } = await control<{ companies: DemoCompany[] }>(sandboxUrl, 'state');
  const size = ({ counts }: DemoCompany) => (counts.contacts ?? 0) + (counts.conversations ?? 0);
  return companies.toSorted((one, other) => size(one) - size(other));
}

/** The API requests that the sandbox received for a company. */
export async function listRequests(sandboxUrl: string, companyId: string): Promise<SeenRequest[]> {
  const all = await control<SeenRequest[]>(sandboxUrl, 'requests?after=0');
  return all.filter(({ company_id, path }) => company_id === companyId && !path.startsWith('/oauth/'));
}

/** Calls the sandbox's control interface: a POST if there is a body. */
export async function control<Answer>(sandboxUrl: string, path: string, body?: object): Promise<Answer> {
  const headers = { 'content-type': 'application/json' };
  const sent = body && { method: 'POST', headers, body: JSON.stringify(body) };
  const answer = await fetch(`${sandboxUrl}/_sandbox/${path}`, sent);
  return (await answer.json()) as Answer;
}
