import { Egress } from '@isthmus/egress';
import { From, Handle } from '@isthmus/messaging';
import { type Caller, mcpClient, type Parsed } from '@isthmus/protocol';
import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { checkMount } from './mount-check.js';
import { mountNotFound, Mounts } from './mounts.js';

@Controller()
export class MountsHandler {
  constructor(
    private readonly mounts: Mounts,
    private readonly egress: Egress,
  ) {}

  @Handle(mcpClient.putMount)
  put(@From() caller: Caller, @Payload() { serverId, spec }: Parsed<typeof mcpClient.putMount>) {
    checkMount(spec, (hostname) => this.egress.refusalOf(hostname));
    return this.mounts.put(caller, serverId, spec);
  }

  @Handle(mcpClient.getMount)
  async get(@From() caller: Caller, @Payload() { serverId }: Parsed<typeof mcpClient.getMount>) {
    const mount = await this.mounts.find(caller, serverId);
    if (!mount) throw mountNotFound();
    return mount;
  }

  @Handle(mcpClient.listMounts)
  list(@From() caller: Caller, @Payload() page: Parsed<typeof mcpClient.listMounts>) {
    return this.mounts.list(caller, page);
  }

  @Handle(mcpClient.deleteMount)
  async delete(@From() caller: Caller, @Payload() { serverId }: Parsed<typeof mcpClient.deleteMount>) {
    if (!(await this.mounts.delete(caller, serverId))) throw mountNotFound();
    return { deleted: true };
  }
}
