//go:build unix

package operate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/samples"
	"github.com/sortie-dev/sortie/local/sortie/argument"
	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/local/sortie/jobfile"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/adapter/container"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker/proctree"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// stopLimit is the time after which a stop kills the machines.
const stopLimit = 20 * time.Second

// The formats of the log.
const (
	logHuman = "human"
	logJSON  = "json"
)

// StackFlags are the flags of the commands that start the local system.
type StackFlags struct {
	Addr, Data, source, logFormat string
	images, engines               []string
	Verbose                       bool
}

// Define adds the flags to a command.
func (f *StackFlags) Define(c *cobra.Command) {
	c.Flags().StringVar(&f.Data, "data", f.Data, "folder of all data")
	c.Flags().StringVar(&f.logFormat, "log-format", "", "human or json; json is the default with --json")
	c.Flags().BoolVarP(&f.Verbose, "verbose", "v", false, "show more of the log, such as requests")
	argument.Complete(c, "log-format", "", []string{logHuman, logJSON})
	argument.Must(c.MarkFlagDirname("data"))
}

func (a *Operator) dev() *cobra.Command {
	f := StackFlags{Data: cli.DefaultData}
	c := &cobra.Command{
		Use:   "dev",
		Short: "Run the whole system on this machine",
		Long: `Run the API, the state machine, an object store, a machines API that starts
workers as processes, and the entity API of the sample collection, in one
process.

The data folder has all data: a restart, even after a crash, resumes every run.
Ctrl-C stops the machines first; their runs start over at the next start. Pods
of a Kubernetes cluster continue. A second Ctrl-C ends the process at once.

With --json the first line on standard output, once the system is ready, is an
object with the addresses of its parts: url, s3, machines, source, bucket, data,
tokenFile, and with the models of --engine.
The log goes to standard error, one line of at most 100 columns per record; with
--log-format json each record is a complete JSON object.

--image binds an image name to a program on this machine with its first
arguments: "NAME=PROGRAM ARG...". The program is a path or a name in PATH.
Arguments that name existing files are relative to the current folder. The export
image is bound to the built-in worker by default.

--engine makes a pool of an inference server: "mock", or one of these with its
address: ` + platform.EngineNames(platform.EnginesWithoutKey()) + `.
Servers of one kind are the replicas of one pool; the first kind has the pool pool0. "sortie ask MODEL PROMPT" uses it.

Programs of this host need no token unless AUTH_TOKEN or "sortie tokens add" sets
one. The file "token" in the data folder always has a valid token. It alone may run
programs (exec:, --image) unless "sortie tokens add --scope exec" makes another.
The data folder
must be closed to other users; do not use one that you did not create.

Settings (SORTIE_..., AUTH_TOKEN) come from the environment; local/README.md has
the table. Workers send heartbeats every 2 s, and are lost after 20 s without one,
unless SORTIE_HEARTBEAT_INTERVAL or SORTIE_HEARTBEAT_TIMEOUT is set.`,
		Example: `  sortie dev
  sortie dev --addr 127.0.0.1:0 --data ~/.local/share/sortie --json
  sortie dev --image registry.fly.io/arke-mods-export-worker:latest=./my-worker
  sortie dev --source https://api.example.org
  sortie dev --engine mock
  sortie dev --engine llamacpp=http://127.0.0.1:8081`,
	}
	flags := c.Flags()
	flags.StringVar(&f.Addr, "addr", "127.0.0.1:8080", "address of the API; port 0 is any free port")
	flags.StringArrayVar(&f.images, "image", nil, "bind an image to a program: NAME=PROGRAM (repeatable)")
	flags.StringArrayVar(&f.engines, "engine", nil, "inference server: mock, or KIND=URL (repeatable)")
	flags.StringVar(&f.source, "source", "", "entity API that workers read; by default that of the sample collection")
	f.Define(c)
	c.RunE = cli.Does(func(ctx context.Context, _ []string) error { return a.runDev(ctx, f) })
	return c
}

// Logger returns the logger of the local system, in the format of the flags.
func (a *Operator) Logger(f StackFlags, level slog.Level) (*slog.Logger, error) {
	format := f.logFormat
	switch {
	case format == "" && a.JSON:
		format = logJSON
	case format == "":
		format = logHuman
	}
	format, err := argument.Choice("--log-format", format, []string{logHuman, logJSON})
	if err != nil {
		return nil, err
	}
	if format == logJSON {
		return slog.New(slog.NewJSONHandler(a.Screen, &slog.HandlerOptions{Level: level})), nil
	}
	return slog.New(display.NewLogHandler(a.Screen, level)), nil
}

// Heartbeats are frequent on one machine, where they are cheap: they carry progress and deliver
// cancel requests.
const (
	devInterval = "2s"
	devTimeout  = "20s"
)

// settings looks up variables and applies the defaults of the local system.
func (a *Operator) settings(name string) (string, bool) {
	const interval, timeout = "SORTIE_HEARTBEAT_INTERVAL", "SORTIE_HEARTBEAT_TIMEOUT"
	value, ok := a.Env(name)
	if ok && value != "" || name != interval && name != timeout {
		return value, ok
	}
	// If one of the two is set, the other is derived from it.
	for _, other := range []string{interval, timeout} {
		if given, ok := a.Env(other); ok && given != "" {
			return value, ok
		}
	}
	if name == interval {
		return devInterval, true
	}
	return devTimeout, true
}

// StartStack starts the local system that the flags describe.
func (a *Operator) StartStack(ctx context.Context, f StackFlags, log *slog.Logger) (*stack.Stack, error) {
	settings, err := stack.SettingsFrom(a.settings, a.Environ)
	if err != nil {
		return nil, cli.Advised{Err: err, Code: cli.ExitUsage, Hint: "these are environment variables; local/README.md has the table"}
	}
	if err := f.check(settings); err != nil {
		return nil, err
	}
	bound, err := jobfile.Images(f.images)
	if err != nil {
		return nil, err
	}
	engines, err := engineAddresses(f.engines)
	if err != nil {
		return nil, err
	}
	containers, err := container.FindAddresses(a.Env)
	if err != nil {
		return nil, cli.Advised{Err: err, Code: cli.ExitUsage, Hint: "these are environment variables of Docker and Podman"}
	}
	return stack.Start(ctx, stack.Config{
		Containers: containers, Engines: engines,
		Addr: f.Addr, DataDir: f.Data, Images: bound, SourceURL: f.source, Executable: a.Executable,
		Settings: settings, Log: log, Version: contract.APIVersion,
	})
}

// check validates the flags before anything is created or opened.
func (f StackFlags) check(settings stack.Settings) error {
	if f.Data == "" {
		return cli.Wrong("--data: missing value, want a folder")
	}
	if f.source != "" {
		source, err := url.Parse(f.source)
		if err != nil || source.Scheme != "http" && source.Scheme != "https" || source.Host == "" || source.RawQuery != "" {
			return cli.Wrong("--source: malformed URL %q, want an http or https URL without a query, such as https://api.example.org", f.source)
		}
	}
	host, _, err := net.SplitHostPort(f.Addr)
	if err != nil {
		return cli.Wrong("--addr: malformed address %q, want HOST:PORT", f.Addr)
	}
	addr := f.Addr
	if host != "" && net.ParseIP(host) == nil {
		addr = "localhost:0" // the name is resolved later
	}
	err = stack.CheckAccess(addr, f.Data, settings)
	if errors.Is(err, httpkit.ErrNoToken) {
		return cli.Advised{Err: err, Code: cli.ExitUsage, Hint: "set AUTH_TOKEN to a secret that clients send as SORTIE_TOKEN, or listen on 127.0.0.1"}
	}
	if err != nil {
		return cli.Advised{Err: err, Code: cli.ExitUsage}
	}
	return nil
}

// StopStack stops the system, even if the context of the command has ended.
func StopStack(s *stack.Stack) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		return fmt.Errorf("cannot stop the system: %w", err)
	}
	return nil
}

func (a *Operator) runDev(ctx context.Context, f StackFlags) error {
	level := slog.LevelInfo
	if f.Verbose {
		level = slog.LevelDebug
	}
	log, err := a.Logger(f, level)
	if err != nil {
		return err
	}
	if proctree.Reaps() {
		go func() {
			if err := proctree.ReapOrphans(ctx); err != nil {
				log.WarnContext(ctx, "cannot wait for orphans; start a container with an init process", "error", err.Error())
			}
		}()
	}
	s, err := a.StartStack(ctx, f, log)
	if err != nil {
		return err
	}
	reserve := stack.Reserve()
	defer runtime.KeepAlive(reserve)
	unregister := func() error { return nil }
	if folder := stack.ServersFolder(a.Env); folder != "" {
		if remove, err := s.Register(folder); err == nil {
			unregister = remove
		} else {
			log.WarnContext(ctx, "client commands find this server from its own folder only", "error", err.Error())
		}
	}
	if err := a.ready(ctx, s); err != nil {
		return errors.Join(err, unregister(), StopStack(s))
	}
	var failed error
	select {
	case <-ctx.Done():
		a.logStartOver(context.WithoutCancel(ctx), s, log)
		log.InfoContext(ctx, "stopping the machines and the server")
	case failed = <-s.Failed():
	}
	return errors.Join(failed, unregister(), StopStack(s))
}

// startOverTime limits the search for runs that a stop interrupts.
const startOverTime = 2 * time.Second

// logStartOver logs the runs that the stop interrupts and that start over. Pods continue.
func (a *Operator) logStartOver(ctx context.Context, s *stack.Stack, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, startOverTime)
	defer cancel()
	c, err := a.ClientOf(s)
	if err != nil {
		log.WarnContext(ctx, "cannot list the runs that start over", "error", err.Error())
		return
	}
	pools, err := c.Pools(ctx)
	if err != nil {
		log.WarnContext(ctx, "cannot list the runs that start over", "error", err.Error())
		return
	}
	onCluster := map[string]bool{}
	for _, p := range pools.Pools {
		onCluster[p.ID] = p.Runner == platform.RunnerKubernetes
	}
	for _, state := range []run.State{run.ContainerCreating, run.Running} {
		list, err := c.Tasks(ctx, client.Page{Filter: contract.RunFilter{States: []string{string(state)}}, Limit: 1000})
		if err != nil {
			log.WarnContext(ctx, "cannot list the runs that start over", "error", err.Error())
			return
		}
		for _, task := range list.Tasks {
			if !onCluster[task.Pool] {
				log.InfoContext(ctx, "starts over at the next start", "task_id", task.TaskID, "attempt", task.Attempt)
			}
		}
	}
}

// ClientOf returns a client of a server that runs in this process.
func (a *Operator) ClientOf(s *stack.Stack) (*client.Client, error) {
	return client.New(client.Config{
		URL: s.Addresses().URL, Token: s.Token(), Clock: a.Clock, Agent: "sortie/" + contract.APIVersion,
	})
}

// ready prints the addresses of the system and the next command.
func (a *Operator) ready(ctx context.Context, s *stack.Stack) error {
	at := s.Addresses()
	if a.JSON {
		return a.PrintLine(at)
	}
	c, err := a.ClientOf(s)
	if err != nil {
		return err
	}
	console, _, err := c.OpenConsole(ctx)
	if err != nil {
		return err
	}
	t := display.NewTable()
	t.Row("  console", console+"  (once, within 10 minutes; later: "+a.Name+" open)")
	t.Row("  API", at.URL)
	t.Row("  entity API", at.Source)
	t.Row("  machines API", at.Machines)
	t.Row("  object store", at.S3+"  (bucket "+at.Bucket+")")
	if len(at.Models) > 0 {
		var models []string
		for i, model := range at.Models {
			models = append(models, fmt.Sprintf("%s (%d runs at one time)", model, at.ModelSlots[i]))
		}
		t.Row("  models", strings.Join(models, ", "))
	}
	t.Row("  data", at.Data)
	t.Row("  client token", at.TokenFile)
	if err := a.Say("Sortie is ready. Ctrl-C stops it.\n\n"); err != nil {
		return err
	}
	if _, err := t.WriteTo(a.Stdout); err != nil {
		return err
	}
	server := ""
	if at.URL != client.LocalURL {
		server = " --url " + at.URL
	}
	if len(at.Models) > 0 {
		return a.Say("\nAsk a model, in another terminal:\n  %s ask %s 'Tell a story' --max-tokens 50%s\n\n", a.Name, at.Models[0], server)
	}
	return a.Say("\nExport the sample collection, in another terminal:\n  %s export mods --pi %s --recursive%s\n\n", a.Name, samples.SampleRoot, server)
}
