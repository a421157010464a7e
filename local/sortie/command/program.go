package command

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/shared/clock"
)

// Program is what a command knows of the process that it runs in.
type Program struct {
	// Args are the arguments after the program's name.
	Args   []string
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	// Env looks up an environment variable.
	Env func(string) (string, bool)
	// Environ is all of it, "NAME=value" each, for a command that is started.
	Environ []string
	Clock   clock.Clock
	// Random gives 64 random bits.
	Random func() uint64
	// Width gives the columns of the terminal that Stderr is; nil where it is
	// none.
	Width func() int
	// AWS finds the account, region and credentials of whoever calls.
	AWS func(ctx context.Context) (aws.Config, error)
	// Executable runs this program again: its path, and arguments before the
	// hidden commands "worker" and "machine-supervisor".
	Executable []string
}

// app is one invocation.
type app struct {
	Program
	screen *display.Screen
	url    string
	json   bool
}

// Main runs the command that the arguments name, until it is done or ctx ends,
// and gives the exit code.
func Main(ctx context.Context, p Program) int {
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
	r := explain(err)
	r.write(a.screen, a.json || slices.Contains(p.Args, "--json"))
	return r.Code
}

// Tree returns the command tree without a process around it, to check command
// lines with. Its commands cannot be executed.
func Tree() *cobra.Command {
	a := &app{Program: Program{Env: func(string) (string, bool) { return "", false }}}
	return a.root()
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "sortie",
		Short: "Run ephemeral workers and bring their results home",
		Long: `Sortie runs ephemeral workers and brings their results home.

"sortie demo" shows the whole in a few seconds. "sortie dev" keeps a server
running on this machine; the other commands call it, or the one that --url or
SORTIE_URL names. SORTIE_TOKEN is sent as the bearer token.

` + exitHelp,
		Example: `  sortie demo
  sortie dev
  sortie export mods --pi 01K9XVBAQZF9EHDRXGBEADTZYY --recursive`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.AddGroup(
		&cobra.Group{ID: "server", Title: "On this machine:"},
		&cobra.Group{ID: "client", Title: "With a server:"},
		&cobra.Group{ID: "stage", Title: "With a stage on AWS:"},
	)
	server, ok := a.Env("SORTIE_URL")
	if !ok || server == "" {
		server = "http://127.0.0.1:8080"
	}
	flags := root.PersistentFlags()
	flags.StringVar(&a.url, "url", server, "where the server is; SORTIE_URL sets it too")
	flags.BoolVar(&a.json, "json", false, "print JSON, errors too")
	for id, commands := range map[string][]*cobra.Command{
		"server": {a.demo(), a.dev(), a.backup(), a.keys(), a.collection(), a.asl(), a.worker()},
		"client": {a.export(), a.status(), a.download(), a.runs(), a.events(), a.cancel(), a.retry(), a.logs()},
		"stage":  {a.secrets()},
	} {
		for _, c := range commands {
			c.GroupID = id
			root.AddCommand(c)
		}
	}
	root.AddCommand(a.version())
	return root
}

// group is a command that only holds others.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(commands...)
	return c
}

// does makes a command's action. What it returns is a failure of the command,
// not of the command line.
func does(action func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := action(cmd.Context(), args); err != nil {
			return failure{err}
		}
		return nil
	}
}

// client makes the client that the flags and the environment ask for.
func (a *app) client() (*client.Client, error) {
	token, _ := a.Env("SORTIE_TOKEN")
	c, err := client.New(client.Config{URL: a.url, Token: token, Clock: a.Clock, Agent: "sortie/" + versionOf(build())})
	if err != nil {
		return nil, wrong("%v", err)
	}
	return c, nil
}

// print writes a result as JSON.
func (a *app) print(v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot write the result: %w", err)
	}
	return a.say("%s\n", text)
}

// printLine writes an object as a line of JSON, for whoever reads on while the
// command runs.
func (a *app) printLine(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("cannot write the result: %w", err)
	}
	return a.say("%s\n", text)
}

// say writes a result.
func (a *app) say(format string, args ...any) error {
	if _, err := fmt.Fprintf(a.Stdout, format, args...); err != nil {
		return fmt.Errorf("cannot write the result: %w", err)
	}
	return nil
}

// note writes something that is no result; with --json it is left out.
func (a *app) note(format string, args ...any) {
	if !a.json {
		a.screen.Line(fmt.Sprintf(format, args...))
	}
}
