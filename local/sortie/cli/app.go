// Package cli has what every command uses: its environment, its client, its results, and its errors
// with hints and exit codes.
package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
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

// App is one invocation of the program.
type App struct {
	Program
	display.Times
	Screen *display.Screen
	UTC    bool
	URL    string
	// tokenFile is the file with the client's token; empty means the environment.
	tokenFile string
	JSON      bool
}

// New returns an invocation of a program.
func New(p Program) *App {
	return &App{Program: p, Screen: display.NewScreen(p.Stderr, p.Width)}
}

// DefaultData is the data folder of "sortie dev" by default.
const DefaultData = ".sortie"

// ServerFlags adds the flags of every client command.
func (a *App) ServerFlags(c *cobra.Command) {
	c.Flags().StringVar(&a.URL, "url", "", "address of the server; by default that of SORTIE_URL, or your server on this machine")
	c.Flags().StringVar(&a.tokenFile, "token-file", "", "file with the token to send; by default that of SORTIE_TOKEN")
	c.Long = strings.TrimRight(cmp.Or(c.Long, c.Short), "\n") + "\n\n" + exitHelp
}

// Group returns a command that only has subcommands.
func Group(use, short string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short, Args: argument.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(commands...)
	return c
}

// Does adapts a command's action. It marks the action's errors as failures of the command; all
// other errors are about the command line.
func Does(action func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := action(cmd.Context(), args); err != nil {
			return failure{err}
		}
		return nil
	}
}

// Client returns a client for the server of the flags and the environment. It sends a token
// found in the data folder only to a server that proves to be the folder's.
func (a *App) Client() (*client.Client, error) {
	token, err := a.givenToken()
	if err != nil {
		return nil, err
	}
	servers := a.servers()
	if a.URL, err = a.chosenURL(servers); err != nil {
		return nil, err
	}
	var transport http.RoundTripper
	for _, s := range append(servers, client.Server{Data: DefaultData}) {
		if token != "" {
			break
		}
		token, transport = foundToken(s.Data, a.URL)
	}
	c, err := client.New(client.Config{
		URL: a.URL, Token: token, Transport: transport, Clock: a.Clock, Agent: "sortie/" + contract.APIVersion,
		OnSilence: func(err error) { a.Note("%v; waiting for the server", err) },
	})
	if err != nil {
		return nil, Wrong("%v", err)
	}
	return c, nil
}

// tokenLimit limits a token file in bytes. It is far above the length of a token.
const tokenLimit = 64 << 10

// givenToken returns the token of --token-file or SORTIE_TOKEN, or "".
func (a *App) givenToken() (string, error) {
	if a.tokenFile == "" {
		token, _ := a.Env("SORTIE_TOKEN")
		return token, nil
	}
	file, err := os.Open(a.tokenFile)
	if err != nil {
		return "", Missing(a.tokenFile, err)
	}
	text, err := io.ReadAll(io.LimitReader(file, tokenLimit))
	if err = errors.Join(err, file.Close()); err != nil {
		return "", fmt.Errorf("cannot read %s: %w", a.tokenFile, err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" {
		return "", Wrong("--token-file: %s is empty, want a token", a.tokenFile)
	}
	return token, nil
}

// Print writes a result as JSON.
func (a *App) Print(v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot write the result: %w", err)
	}
	return a.Say("%s\n", display.EscapeJSON(text))
}

// PrintLine writes an object as one line of JSON, for readers that do not wait for the end of
// the command.
func (a *App) PrintLine(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("cannot write the result: %w", err)
	}
	return a.Say("%s\n", display.EscapeJSON(text))
}

// Say writes a result.
func (a *App) Say(format string, args ...any) error {
	if _, err := fmt.Fprintf(a.Stdout, format, args...); err != nil {
		return fmt.Errorf("cannot write the result: %w", err)
	}
	return nil
}

// Note writes a line that is not a result; --json suppresses it.
func (a *App) Note(format string, args ...any) {
	if !a.JSON {
		a.Screen.Line(fmt.Sprintf(format, args...))
	}
}

// ReadFile reads a file up to one byte more than a document may have. "-" means standard input.
func (a *App) ReadFile(name string) ([]byte, error) { return a.ReadUpTo(name, limit.JobDocument+1) }

// ReadUpTo reads at most the given number of bytes of a file. "-" means standard input.
func (a *App) ReadUpTo(name string, most int64) ([]byte, error) {
	source := a.Stdin
	if name != "-" {
		opened, err := os.Open(name)
		if err != nil {
			return nil, Missing(name, err)
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
