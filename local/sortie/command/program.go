package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/argument"
	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/local/sortie/stage/doctor"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Program is the environment of a command: arguments, streams, clock and so on.
type Program struct {
	// Name is the command that starts this program, as shown in texts; empty means "sortie".
	Name string
	// Args are the arguments after the program's name.
	Args   []string
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	// Env looks up an environment variable.
	Env func(string) (string, bool)
	// Environ has all variables as "NAME=value", for child processes.
	Environ []string
	Clock   clock.Clock
	// Random returns 64 random bits.
	Random func() uint64
	// Width returns the columns of the terminal at Stderr. It is nil if Stderr is not a
	// terminal.
	Width func() int
	// Size returns the columns and rows of the terminal at Stdout. It is nil if Stdout is not a
	// terminal.
	Size func() (columns, rows int)
	// Zone is the time zone of the user; nil means UTC. It is used on a terminal.
	Zone *time.Location
	// AWS loads the caller's account, region and credentials.
	AWS func(ctx context.Context) (aws.Config, error)
	// Resolver looks up DNS names; nil means the host's resolver.
	Resolver doctor.Resolver
	// Executable is the command that starts this program again: its path, and the arguments
	// before the hidden commands "worker" and "machine-supervisor".
	Executable []string
}

// app is one invocation of the program.
type app struct {
	Program
	display.Times
	screen *display.Screen
	utc    bool
	url    string
	// tokenFile is the file with the client's token; empty means the environment.
	tokenFile string
	json      bool
}

// Main runs the command that the arguments name until it is done or ctx ends. It returns the
// exit code.
func Main(ctx context.Context, p Program) int {
	if p.Name == "" {
		p.Name = "sortie"
	}
	a := &app{Program: p, screen: display.NewScreen(p.Stderr, p.Width)}
	root := a.root()
	root.SetArgs(p.Args)
	root.SetIn(p.Stdin)
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitOK
	}
	r := a.explain(err)
	plain, _ := a.Env("NO_COLOR")
	r.write(a.screen, a.json || slices.Contains(p.Args, "--json"), a.screen.Draws() && plain == "")
	return r.Code
}

// forReader chooses the form of texts. On a terminal, times are local and states have colours,
// unless NO_COLOR is set.
func (a *app) forReader() {
	if a.Size != nil && !a.utc {
		a.Times.Zone = a.Program.Zone
	}
	if plain, _ := a.Env("NO_COLOR"); a.Size != nil && plain == "" {
		a.Stdout = display.Colored{Writer: a.Stdout}
	}
}

// Tree returns the command tree without a process, to validate command lines. Its commands
// cannot be executed.
func Tree() *cobra.Command {
	a := &app{Program: Program{Env: func(string) (string, bool) { return "", false }}}
	return a.root()
}

func (a *app) root() *cobra.Command {
	var version bool
	root := &cobra.Command{
		Use:   "sortie",
		Short: "Run ephemeral workers and fetch their results",
		Long: `Sortie runs ephemeral workers and fetches their results.

"sortie demo" shows one run in a few seconds. "sortie dev" keeps a server
running on this machine. The client commands find it from every folder, with its
token, which they send once the server has proved that it has the key of its data
folder. --url or SORTIE_URL name another server, --token-file or SORTIE_TOKEN
another token.`,
		Example: `  sortie demo
  sortie dev
  sortie export mods --pi 01K9XVBAQZF9EHDRXGBEADTZYY --recursive`,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if version {
				return a.showVersion()
			}
			return cmd.Help()
		},
	}
	root.AddGroup(
		&cobra.Group{ID: "server", Title: "On this machine:"},
		&cobra.Group{ID: "client", Title: "With a server:"},
		&cobra.Group{ID: "stage", Title: "With a stage on AWS:"},
	)
	// Cobra's version flag would need text/template for a custom text.
	root.Flags().BoolVarP(&version, "version", "v", false, "show the version of this program")
	root.SetFlagErrorFunc(argument.FlagError)
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print JSON, errors too")
	root.PersistentFlags().BoolVar(&a.utc, "utc", false, "print times in UTC, as without a terminal")
	root.PersistentPreRun = func(*cobra.Command, []string) { a.forReader() }
	for id, commands := range map[string][]*cobra.Command{
		"server": append(a.serverCommands(), a.imports()),
		"client": {a.open(), a.run(), a.export(), a.status(), a.explainRun(), a.download(), a.runs(), a.events(), a.cancel(), a.retry(), a.label(), a.logs(), a.jobs(), a.pools(), a.webhooks(), a.artifacts(), a.models(), a.sessions(), a.budgets(), a.ask()},
		"stage":  {a.stage(), a.redrive()},
	} {
		for _, c := range commands {
			c.GroupID = id
			if id == "client" {
				a.serverFlags(c)
			}
			root.AddCommand(c)
		}
	}
	root.AddCommand(a.version())
	a.completeFlags(root)
	argument.Check(root)
	return root
}

// defaultData is the data folder of "sortie dev" by default.
const defaultData = ".sortie"

// serverFlags adds the flags of every client command.
func (a *app) serverFlags(c *cobra.Command) {
	c.Flags().StringVar(&a.url, "url", "", "address of the server; by default that of SORTIE_URL, or your server on this machine")
	c.Flags().StringVar(&a.tokenFile, "token-file", "", "file with the token to send; by default that of SORTIE_TOKEN")
	c.Long = strings.TrimRight(cmp.Or(c.Long, c.Short), "\n") + "\n\n" + exitHelp
}

// group returns a command that only has subcommands.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short, Args: argument.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(commands...)
	return c
}

// does adapts a command's action. It marks the action's errors as failures of the command; all
// other errors are about the command line.
func does(action func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := action(cmd.Context(), args); err != nil {
			return failure{err}
		}
		return nil
	}
}

// client returns a client for the server of the flags and the environment. It sends a token
// found in the data folder only to a server that proves to be the folder's.
func (a *app) client() (*client.Client, error) {
	token, err := a.givenToken()
	if err != nil {
		return nil, err
	}
	servers := a.servers()
	if a.url, err = a.chosenURL(servers); err != nil {
		return nil, err
	}
	var transport http.RoundTripper
	for _, s := range append(servers, client.Server{Data: defaultData}) {
		if token != "" {
			break
		}
		token, transport = foundToken(s.Data, a.url)
	}
	c, err := client.New(client.Config{
		URL: a.url, Token: token, Transport: transport, Clock: a.Clock, Agent: "sortie/" + contract.APIVersion,
		OnSilence: func(err error) { a.note("%v; waiting for the server", err) },
	})
	if err != nil {
		return nil, wrong("%v", err)
	}
	return c, nil
}

// tokenLimit limits a token file in bytes. It is far above the length of a token.
const tokenLimit = 64 << 10

// givenToken returns the token of --token-file or SORTIE_TOKEN, or "".
func (a *app) givenToken() (string, error) {
	if a.tokenFile == "" {
		token, _ := a.Env("SORTIE_TOKEN")
		return token, nil
	}
	file, err := os.Open(a.tokenFile)
	if err != nil {
		return "", missing(a.tokenFile, err)
	}
	text, err := io.ReadAll(io.LimitReader(file, tokenLimit))
	if err = errors.Join(err, file.Close()); err != nil {
		return "", fmt.Errorf("cannot read %s: %w", a.tokenFile, err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" {
		return "", wrong("--token-file: %s is empty, want a token", a.tokenFile)
	}
	return token, nil
}

// print writes a result as JSON.
func (a *app) print(v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot write the result: %w", err)
	}
	return a.say("%s\n", display.EscapeJSON(text))
}

// printLine writes an object as one line of JSON, for readers that do not wait for the end of
// the command.
func (a *app) printLine(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("cannot write the result: %w", err)
	}
	return a.say("%s\n", display.EscapeJSON(text))
}

// say writes a result.
func (a *app) say(format string, args ...any) error {
	if _, err := fmt.Fprintf(a.Stdout, format, args...); err != nil {
		return fmt.Errorf("cannot write the result: %w", err)
	}
	return nil
}

// note writes a line that is not a result; --json suppresses it.
func (a *app) note(format string, args ...any) {
	if !a.json {
		a.screen.Line(fmt.Sprintf(format, args...))
	}
}

// readFile reads a file up to one byte more than a document may have. "-" means standard input.
func (a *app) readFile(name string) ([]byte, error) { return a.readUpTo(name, limit.JobDocument+1) }

func (a *app) readUpTo(name string, most int64) ([]byte, error) {
	source := a.Stdin
	if name != "-" {
		opened, err := os.Open(name)
		if err != nil {
			return nil, missing(name, err)
		}
		defer func() { _ = opened.Close() }()
		source = opened
	}
	document, err := io.ReadAll(io.LimitReader(source, most))
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	}
	return document, nil
}
