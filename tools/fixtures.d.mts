/** A workflow definition as the registration routes take it. */
export type Fixture = { readonly id: string } & Readonly<Record<string, unknown>>;
export declare function fixturesFor(options?: { readonly mcpServerUrl?: string | undefined }): readonly Fixture[];
export declare function conformanceMount(mcpServerUrl: string): { readonly url: string } & Readonly<Record<string, unknown>>;
export declare function seedFixtures(options: {
  readonly baseUrl: string;
  readonly keys: readonly string[];
  readonly mcpServerUrl?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}): Promise<void>;
