package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/shared/contract"
)

// poolDocument is a definition of a pool with the pool's id.
type poolDocument struct {
	ID string `json:"id"`
	contract.PoolDefinition
}

func (a *app) poolsApply() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use: "apply -f FILE", Short: "Create a pool or change its definition",
		Long: `Create a pool or change its definition: its runner, the settings of the runner, and its
limits. What the file leaves out has the default of the server. A new runner applies to
machines that are created from then on. The command is idempotent.`,
		Example: `  sortie pools apply -f pool.yaml

  # pool.yaml
  id: europe
  limit: 20
  runner: fly
  settings:
    regions: [ams, fra]`,
		Args: exactly(),
	}
	c.Flags().StringVarP(&file, "file", "f", "", `definition of the pool in YAML or JSON, "-" for standard input (required)`)
	require(c, "file")
	c.RunE = does(func(ctx context.Context, _ []string) error {
		text, err := a.readFile(file)
		if err != nil {
			return err
		}
		document, err := readPool(text)
		if err != nil {
			return wrong("%s: %v", file, err)
		}
		server, err := a.client()
		if err != nil {
			return err
		}
		stored, err := storedPool(ctx, server, document.ID)
		if err != nil {
			return err
		}
		p, err := server.PutPool(ctx, document.ID, document.PoolDefinition, stored.Tag)
		if err != nil {
			return err
		}
		return a.applied(p, stored)
	})
	return c
}

// readPool reads the document of a pool. Members that the server knows and this version
// does not are errors.
func readPool(text []byte) (document poolDocument, err error) {
	converted, err := yaml.YAMLToJSON(text)
	if err != nil {
		return document, fmt.Errorf("malformed YAML: %w", err)
	}
	strict := json.NewDecoder(bytes.NewReader(converted))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&document); err != nil {
		return document, malformedPool(err)
	}
	if document.ID == "" {
		return document, errors.New("missing id, want the name of the pool")
	}
	if document.Limit == nil {
		return document, errors.New("missing limit, want the number of slots, or 0 for no limit")
	}
	return document, nil
}

// malformedPool names the field that a document has wrong.
func malformedPool(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		field := strings.TrimPrefix(wrong.Field, "PoolDefinition.")
		return fmt.Errorf("%s: got %s, want a value of type %s", field, wrong.Value, kindOf(wrong.Type))
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return fmt.Errorf("unknown field %s, want those of \"sortie pools show ID --json\"", name)
	}
	return fmt.Errorf("malformed definition of a pool: %w", err)
}

// kindOf is the JSON type of a Go type.
func kindOf(t reflect.Type) string {
	switch t.Kind() { //nolint:exhaustive // the others are no members of a pool
	case reflect.String:
		return "string"
	case reflect.Slice:
		return "array"
	case reflect.Struct, reflect.Map:
		return "object"
	case reflect.Bool:
		return "boolean"
	}
	return "number"
}

// applied prints a pool and what has changed.
func (a *app) applied(p, before client.Pool) error {
	if a.json {
		return a.print(p)
	}
	what := "unchanged"
	switch {
	case before.Tag == "":
		what = "created"
	case before.Tag != p.Tag:
		what = "changed"
	}
	return a.say("%s %s: %s, %s slots, queue of %s%s\n", what, p.ID, admission(p.Pool), bound(p.Limit), bound(p.QueueLimit), placement(p.Pool))
}
