// What Postgres counted: these figures do not depend on how busy the machine is.
import pg from 'pg';

/** WAL flushes moved from pg_stat_wal to pg_stat_io with version 18. */
const FSYNCS = {
  18: `select sum(fsyncs) from pg_stat_io where object = 'wal'`,
  14: 'select wal_sync from pg_stat_wal',
};

export class Counters {
  #client;
  #sql;

  static async open(databaseUrl) {
    const counters = new Counters();
    counters.#client = new pg.Client({ connectionString: databaseUrl });
    counters.#client.on('error', () => {}); // the next read says so
    await counters.#client.connect();
    const { rows } = await counters.#client.query(`select current_setting('server_version_num')::int / 10000 as major`);
    const fsyncs = FSYNCS[rows[0].major >= 18 ? 18 : 14];
    counters.#sql = `select
      (select xact_commit from pg_stat_database where datname = current_database())::float8 as transactions,
      pg_snapshot_xmax(pg_current_snapshot())::text::float8 as writes,
      (${fsyncs})::float8 as fsyncs,
      (pg_current_wal_insert_lsn() - '0/0')::float8 / 1000 as "walKb",
      (select wal_fpi from pg_stat_wal)::float8 as "fullPages"`;
    return counters;
  }

  /**
   * Since the server was started: commits of whatever kind, those that wrote (transaction ids given out), flushes of the WAL, its
   * kilobytes, and whole pages in it.
   */
  async read() {
    const { rows } = await this.#client.query(this.#sql);
    return rows[0];
  }

  /** What the figures were taken on: a flush that is switched off, or a disk that only says it flushed, shows in the floor. */
  async describe() {
    const names = ['server_version', 'fsync', 'synchronous_commit', 'wal_sync_method', 'wal_compression', 'full_page_writes'];
    const { rows } = await this.#client.query('select name, setting from pg_settings where name = any($1)', [names]);
    return Object.fromEntries(rows.map(({ name, setting }) => [name, setting]));
  }

  async makeFloor() {
    await this.#client.query(
      'create table if not exists public.bench_floor (id bigint generated always as identity primary key, payload text not null)',
    );
  }

  async close() {
    await this.#client.end();
  }
}
