package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/shared/domain/artifact"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func (a *app) artifacts() *cobra.Command {
	return a.Resources("artifacts", "Store, list and show content-addressed documents",
		a.artifactsCreate(), a.artifactsPut(), a.artifactsList(), a.artifactsShow(), a.artifactsGet())
}

func (a *app) artifactsCreate() *cobra.Command {
	var in contract.ArtifactRequest
	var parent string
	c := &cobra.Command{
		Use: "create KIND FILE", Short: "Store the JSON value in a file",
		Long: `Store the JSON value in a file, and print its id: the SHA-256 of its canonical form. The
same content again is the same artifact, with the tags that it has.`,
		Example: "  sortie artifacts create note note.json --tag draft",
	}
	flags := c.Flags()
	flags.StringSliceVar(&in.Tags, "tag", nil, "tags, separated by commas")
	flags.StringVar(&parent, "parent", "", "id of an artifact that is kept as long as this one")
	c.RunE = a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
		content, err := readArtifact(args[1])
		if err != nil {
			return err
		}
		in.Kind, in.Content = args[0], content
		if flags.Changed("parent") {
			in.Parent = &parent
		}
		created, err := c.CreateArtifact(ctx, in)
		if err != nil {
			return err
		}
		return a.Result(created, "%s\n", created.ID)
	})
	return c
}

// readArtifact reads a document file, up to one byte more than the API accepts.
func readArtifact(name string) (content json.RawMessage, err error) {
	file, err := os.Open(name) //nolint:gosec // the caller names the file
	if err != nil {
		return nil, fmt.Errorf("cannot read the document: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	content, err = io.ReadAll(io.LimitReader(file, artifact.MaxSize+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read the document: %w", err)
	case len(content) > artifact.MaxSize:
		return nil, fmt.Errorf("%s has more than %d bytes, the largest size of an artifact", name, artifact.MaxSize)
	case !json.Valid(content):
		return nil, fmt.Errorf("%s is not JSON, want one JSON value", name)
	}
	return content, nil
}

func (a *app) artifactsList() *cobra.Command {
	var kind, tag, parent string
	most := 50
	c := &cobra.Command{
		Use: "list", Short: "List artifacts, the newest first", Example: "  sortie artifacts list --kind trace --tag task:inf_01KJM74XY0H3ZZ5T605S8SXKKV",
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, _ []string) error {
			all := contract.ArtifactList{Artifacts: []contract.ArtifactSummary{}}
			err := cli.Pages(most, func(cursor string) (int, string, error) {
				list, err := c.Artifacts(ctx, cli.Given(url.Values{"limit": {strconv.Itoa(most - len(all.Artifacts))}}, map[string]string{"kind": kind, "tag": tag, "parent": parent, "cursor": cursor}))
				all.Artifacts, all.NextCursor = append(all.Artifacts, list.Artifacts...), list.NextCursor
				return len(all.Artifacts), list.NextCursor, err
			})
			if err != nil {
				return err
			}
			t := display.NewTable("ARTIFACT", "KIND", "BYTES", "CREATED", "TAGS")
			for _, each := range all.Artifacts {
				t.Row(each.ID, display.Clean(each.Kind), strconv.FormatInt(each.Size, 10), a.Moment(time.UnixMilli(each.CreatedMS)), display.Clean(strings.Join(each.Tags, ",")))
			}
			return a.Table(all, t)
		}),
	}
	flags := c.Flags()
	flags.StringVar(&kind, "kind", "", "only artifacts of this kind")
	flags.StringVar(&tag, "tag", "", "only artifacts with this tag")
	flags.StringVar(&parent, "parent", "", "only artifacts with this parent")
	flags.IntVar(&most, "limit", most, "at most this many artifacts, up to 1000")
	return c
}

func (a *app) artifactsShow() *cobra.Command {
	return &cobra.Command{
		Use: "show ARTIFACT", Short: "Print the JSON value that an artifact is, or with --json the artifact", Example: "  sortie artifacts show sha256:74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b",
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			record, err := c.ArtifactRecord(ctx, args[0])
			switch {
			case err != nil:
				return err
			case record.MediaType != artifact.TypeJSON && a.JSON:
				return a.Print(record)
			case record.MediaType != artifact.TypeJSON:
				return fmt.Errorf("the artifact is %s, which is not JSON; sortie artifacts get saves it", display.Clean(record.MediaType))
			}
			found, err := c.Artifact(ctx, args[0])
			if err != nil {
				return err
			}
			return a.Result(found, "%s\n", found.Content)
		}),
	}
}
