package cli

import (
	"context"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
)

// A runner is the action of a cobra command.
type runner = func(*cobra.Command, []string) error

// Resources returns a group of commands for things that a server stores.
func (a *App) Resources(use, short string, commands ...*cobra.Command) *cobra.Command {
	for _, c := range commands {
		a.ServerFlags(c)
	}
	return Group(use, short, commands...)
}

// WithClient adapts an action that needs a client.
func (a *App) WithClient(action func(context.Context, *client.Client, []string) error) runner {
	return Does(func(ctx context.Context, args []string) error {
		c, err := a.Client()
		if err != nil {
			return err
		}
		return action(ctx, c, args)
	})
}

// query asks a server for the result of a command.
type query[T any] = func(ctx context.Context, c *client.Client, args []string) (T, error)

// Printed adapts a query to a command that shows its result.
func Printed[T any](a *App, ask query[T], show func(T) error) runner {
	return a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
		v, err := ask(ctx, c, args)
		if err != nil {
			return err
		}
		return show(v)
	})
}

// ByID returns the query of a method of the client for the thing that the first argument names.
func ByID[T any](method func(*client.Client, context.Context, string) (T, error)) query[T] {
	return func(ctx context.Context, c *client.Client, args []string) (T, error) { return method(c, ctx, args[0]) }
}

// Removal returns a command that removes the thing that its argument names. done is its word
// for that, such as "deleted".
func (a *App) Removal(c *cobra.Command, done string, remove func(*client.Client, context.Context, string) error) *cobra.Command {
	c.RunE = a.WithClient(func(ctx context.Context, cl *client.Client, args []string) error {
		if err := remove(cl, ctx, args[0]); err != nil {
			return err
		}
		return a.Result(map[string]any{done: args[0]}, "%s %s\n", done, args[0])
	})
	return c
}

// Pages reads pages until the last one, or until most elements are read; 0 means all. read
// returns the number of elements so far and the cursor of the next page.
func Pages(most int, read func(cursor string) (count int, next string, err error)) error {
	for cursor := ""; ; {
		count, next, err := read(cursor)
		if err != nil || next == "" || most > 0 && count >= most {
			return err
		}
		cursor = next
	}
}

// Given adds the values that are not empty to a query.
func Given(query url.Values, values map[string]string) url.Values {
	for name, value := range values {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query
}

// Result prints a result: as JSON with --json, otherwise as text.
func (a *App) Result(v any, format string, args ...any) error {
	if a.JSON {
		return a.Print(v)
	}
	return a.Say(format, args...)
}

// Table prints a result: as JSON with --json, otherwise as a table.
func (a *App) Table(v any, t *display.Table) error {
	if a.JSON {
		return a.Print(v)
	}
	_, err := t.WriteTo(a.Stdout)
	return err
}
