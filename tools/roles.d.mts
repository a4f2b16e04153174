export declare const roleOf: (service: string) => string | undefined;
export declare function serviceUrl(adminUrl: string, service: string): string | undefined;
export declare function ensureRoles(adminUrl: string): Promise<void>;
