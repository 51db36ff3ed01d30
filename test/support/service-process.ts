import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { onTestFinished } from 'vitest'
import { spawnInRoot, spawnService } from './spawn-service.ts'
import { testFolder } from './test-folder.ts'

/** The service in its own process, as users run it, for the duration of a test. */
export class ServiceProcess {
  readonly child: ChildProcess
  stdout = ''
  stderr = ''
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>

  private constructor(child: ChildProcess) {
    this.child = child
    child.stdout?.on('data', (chunk: Buffer) => {
      this.stdout += chunk.toString()
    })
    child.stderr?.on('data', (chunk: Buffer) => {
      this.stderr += chunk.toString()
    })
    // `close` and not `exit`: at `close`, all output has been read.
    this.exited = once(child, 'close').then(([code, signal]) => ({ code, signal }))
    onTestFinished(async () => {
      child.kill('SIGKILL')
      await this.exited
    })
  }

  static run(args: readonly string[], environment: Readonly<Record<string, string>> = {}): ServiceProcess {
    return new ServiceProcess(spawnService(args, { environment }))
  }

  /** The log goes to a file that is already open. */
  static loggingTo(file: number, args: readonly string[]): ServiceProcess {
    return new ServiceProcess(spawnService(args, { stderr: file }))
  }

  /** The limit of open files. */
  static async withOpenFiles(count: number): Promise<ServiceProcess> {
    const given = ['--port', '0', '--data', await testFolder()]
    const service = new ServiceProcess(spawnService(given, { openFiles: count }))
    await service.listening()
    return service
  }

  static npmStart(args: readonly string[]): ServiceProcess {
    return new ServiceProcess(spawnInRoot('npm', ['start', '--silent', '--', ...args]))
  }

  /** Starts on a free port and in a new folder; resolves once it accepts requests. */
  static async started(
    args: readonly string[] = [],
    data?: string,
    environment: Readonly<Record<string, string>> = {},
  ): Promise<ServiceProcess> {
    const folder = data ?? (await testFolder())
    const service = ServiceProcess.run(['--port', '0', '--data', folder, ...args], environment)
    await service.listening()
    return service
  }

  async listening(): Promise<void> {
    while (!this.stdout.includes('\n')) {
      if (this.child.exitCode !== null) throw new Error(`it ended: ${this.stderr}`)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }

  get url(): string {
    const url = /https?:\S+/.exec(this.stdout)?.[0]
    if (url === undefined) throw new Error(`no URL in ${JSON.stringify(this.stdout)}`)
    return url
  }

  get port(): number {
    return Number(new URL(this.url).port)
  }

  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal)
  }

  /** The log so far, line by line. */
  get logLines(): Record<string, unknown>[] {
    return this.stderr
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line))
  }

  async logged(text: string): Promise<void> {
    while (!this.stderr.includes(text)) await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
