package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/httpkit"
)

// stopLimit is how long machines may take to end when the stack stops; then
// they are killed.
const stopLimit = 20 * time.Second

// stackFlags are the flags of the commands that start a stack.
type stackFlags struct {
	addr, data, source string
	images             []string
	verbose            bool
}

func (a *app) dev() *cobra.Command {
	var f stackFlags
	c := &cobra.Command{
		Use:   "dev",
		Short: "Keep the whole system running on this machine",
		Long: `Run the API, the state machine, an object store, a machines API that starts
workers as processes, and the sample collection's entity API, in one process.

Everything is kept in the data folder: a restart, even after a crash, goes on
where it was. Ctrl-C ends the machines first; their runs are tried again at the
next start. A second Ctrl-C ends at once.

With --json the first line on standard output, once the system is ready, is an
object with the addresses of its parts: url, s3, machines, source, bucket, data.
Logs go to standard error.

--image binds an image name to a program on this machine, with first arguments
after it: "NAME=/path/to/program --flag". The export image is bound to the
built-in worker unless it is given. Settings (SORTIE_..., AUTH_TOKEN) come from
the environment; see the README.`,
		Example: `  sortie dev
  sortie dev --addr 127.0.0.1:0 --data /tmp/sortie --json
  sortie dev --image registry.fly.io/arke-mods-export-worker:latest=./my-worker
  sortie dev --source https://api.example.org`,
		Args: cobra.NoArgs,
	}
	flags := c.Flags()
	flags.StringVar(&f.addr, "addr", "127.0.0.1:8080", "where the API listens; port 0 is any free one")
	flags.StringVar(&f.data, "data", ".sortie", "the folder that everything is kept in")
	flags.StringArrayVar(&f.images, "image", nil, "bind an image to a program: NAME=PROGRAM (repeatable)")
	flags.StringVar(&f.source, "source", "", "the entity API that workers read; by default the sample collection's")
	c.RunE = does(func(ctx context.Context, _ []string) error { return a.runDev(ctx, f) })
	return c
}

// logger writes for programs with --json, for people otherwise.
func (a *app) logger(level slog.Level) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if a.json {
		return slog.New(slog.NewJSONHandler(a.screen, options))
	}
	return slog.New(slog.NewTextHandler(a.screen, options))
}

// startStack starts the system that the flags ask for.
func (a *app) startStack(ctx context.Context, f stackFlags, log *slog.Logger) (*stack.Stack, stack.Settings, error) {
	settings, err := stack.SettingsFrom(a.Env, a.Environ)
	if err != nil {
		return nil, settings, advised{error: err, code: ExitUsage, hint: "these are environment variables; the README has a table of them"}
	}
	if err := f.check(settings.Tokens); err != nil {
		return nil, settings, err
	}
	bound, err := images(f.images)
	if err != nil {
		return nil, settings, err
	}
	s, err := stack.Start(ctx, stack.Config{
		Addr: f.addr, DataDir: f.data, Images: bound, SourceURL: f.source, Executable: a.Executable,
		Settings: settings, Log: log, Version: versionOf(build()),
	})
	return s, settings, err
}

// check says what is wrong with the flags before anything is made or opened.
func (f stackFlags) check(tokens []string) error {
	if f.data == "" {
		return wrong("--data names no folder")
	}
	if f.source != "" {
		source, err := url.Parse(f.source)
		if err != nil || source.Scheme != "http" && source.Scheme != "https" || source.Host == "" || source.RawQuery != "" {
			return wrong("--source has to be an http or https URL without a query, such as https://api.example.org")
		}
	}
	host, _, err := net.SplitHostPort(f.addr)
	if err != nil {
		return wrong("--addr %s is not of the form HOST:PORT", f.addr)
	}
	if host != "" && net.ParseIP(host) == nil {
		return nil // a name is looked up first
	}
	if _, err := httpkit.CheckAddress(f.addr, tokens); err != nil {
		return advised{error: err, code: ExitUsage, hint: "set AUTH_TOKEN to a secret that clients send as SORTIE_TOKEN, or listen on 127.0.0.1"}
	}
	return nil
}

// stopStack stops the system whatever has ended already.
func stopStack(s *stack.Stack) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		return fmt.Errorf("cannot stop in order: %w", err)
	}
	return nil
}

func (a *app) runDev(ctx context.Context, f stackFlags) error {
	log := a.logger(slog.LevelInfo)
	s, _, err := a.startStack(ctx, f, log)
	if err != nil {
		return err
	}
	if err := a.ready(s.Addresses()); err != nil {
		return errors.Join(err, stopStack(s))
	}
	var failed error
	select {
	case <-ctx.Done():
		log.InfoContext(ctx, "stopping the machines and the server")
	case failed = <-s.Failed():
	}
	return errors.Join(failed, stopStack(s))
}

// ready tells where everything is.
func (a *app) ready(at stack.Addresses) error {
	if a.json {
		return a.printLine(at)
	}
	t := display.NewTable()
	t.Row("  API", at.URL)
	t.Row("  entity API", at.Source)
	t.Row("  machines API", at.Machines)
	t.Row("  object store", at.S3+"  (bucket "+at.Bucket+")")
	t.Row("  data", at.Data)
	if err := a.say("Sortie is ready. Ctrl-C ends it.\n\n"); err != nil {
		return err
	}
	if _, err := t.WriteTo(a.Stdout); err != nil {
		return err
	}
	return a.say("\n")
}
