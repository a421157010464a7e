package command

import (
	"context"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
)

// A runner is the action of a cobra command.
type runner = func(*cobra.Command, []string) error

// resources returns a group of commands for things that a server stores.
func (a *app) resources(use, short string, commands ...*cobra.Command) *cobra.Command {
	for _, c := range commands {
		a.serverFlags(c)
	}
	return group(use, short, commands...)
}

// withClient adapts an action that needs a client.
func (a *app) withClient(action func(context.Context, *client.Client, []string) error) runner {
	return does(func(ctx context.Context, args []string) error {
		c, err := a.client()
		if err != nil {
			return err
		}
		return action(ctx, c, args)
	})
}

// query asks a server for the result of a command.
type query[T any] = func(ctx context.Context, c *client.Client, args []string) (T, error)

// printed adapts a query to a command that shows its result.
func printed[T any](a *app, ask query[T], show func(T) error) runner {
	return a.withClient(func(ctx context.Context, c *client.Client, args []string) error {
		v, err := ask(ctx, c, args)
		if err != nil {
			return err
		}
		return show(v)
	})
}

// byID returns the query of a method of the client for the thing that the first argument names.
func byID[T any](method func(*client.Client, context.Context, string) (T, error)) query[T] {
	return func(ctx context.Context, c *client.Client, args []string) (T, error) { return method(c, ctx, args[0]) }
}

// removal returns a command that removes the thing that its argument names. done is its word
// for that, such as "deleted".
func (a *app) removal(c *cobra.Command, done string, remove func(*client.Client, context.Context, string) error) *cobra.Command {
	c.RunE = a.withClient(func(ctx context.Context, cl *client.Client, args []string) error {
		if err := remove(cl, ctx, args[0]); err != nil {
			return err
		}
		return a.result(map[string]any{done: args[0]}, "%s %s\n", done, args[0])
	})
	return c
}

// pages reads pages until the last one, or until most elements are read; 0 means all. read
// returns the number of elements so far and the cursor of the next page.
func pages(most int, read func(cursor string) (count int, next string, err error)) error {
	for cursor := ""; ; {
		count, next, err := read(cursor)
		if err != nil || next == "" || most > 0 && count >= most {
			return err
		}
		cursor = next
	}
}

// given adds the values that are not empty to a query.
func given(query url.Values, values map[string]string) url.Values {
	for name, value := range values {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query
}

// result prints a result: as JSON with --json, otherwise as text.
func (a *app) result(v any, format string, args ...any) error {
	if a.json {
		return a.print(v)
	}
	return a.say(format, args...)
}

// table prints a result: as JSON with --json, otherwise as a table.
func (a *app) table(v any, t *display.Table) error {
	if a.json {
		return a.print(v)
	}
	_, err := t.WriteTo(a.Stdout)
	return err
}
