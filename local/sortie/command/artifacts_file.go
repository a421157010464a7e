package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/fetch"
	"github.com/sortie-dev/sortie/shared/domain/artifact"
)

// anyType is the media type of files with an unknown type.
const anyType = "application/octet-stream"

func (a *app) artifactsPut() *cobra.Command {
	var tags []string
	var parent, metadata, mediaType string
	c := &cobra.Command{
		Use: "put KIND FILE", Short: "Store the bytes of a file",
		Long: `Store the bytes of a file, and print its id: their SHA-256. The same bytes again are the
same artifact, with the tags that it has. A JSON value is stored as one by
"sortie artifacts create".`,
		Example: "  sortie artifacts put model-card card.pdf --tag draft",
	}
	flags := c.Flags()
	flags.StringSliceVar(&tags, "tag", nil, "tags, separated by commas")
	flags.StringVar(&parent, "parent", "", "id of an artifact that is kept as long as this one")
	flags.StringVar(&metadata, "metadata", "", "a JSON object that describes it")
	flags.StringVar(&mediaType, "type", "", "media type; without it that of the extension, otherwise "+anyType)
	c.RunE = a.WithClient(func(ctx context.Context, c *client.Client, args []string) (err error) {
		query := cli.Given(url.Values{"kind": {args[0]}}, map[string]string{"tags": strings.Join(tags, " "), "parent": parent, "metadata": metadata})
		file, err := os.Open(args[1])
		if err != nil {
			return fmt.Errorf("cannot read the file: %w", err)
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		info, err := file.Stat()
		if err != nil {
			return fmt.Errorf("cannot read the file: %w", err)
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is not a file, want one that can be read again", args[1])
		}
		created, err := c.PutArtifact(ctx, query, typeOf(args[1], mediaType), file, info.Size())
		if err != nil {
			return err
		}
		return a.Result(created, "%s\n", created.ID)
	})
	return c
}

// typeOf returns the media type of a file: given, or else the type for the file's extension.
func typeOf(name, given string) string {
	if given != "" {
		return given
	}
	if parsed, err := artifact.ParseMediaType(mime.TypeByExtension(filepath.Ext(name))); err == nil {
		return parsed
	}
	return anyType
}

func (a *app) artifactsGet() *cobra.Command {
	var to target
	c := &cobra.Command{
		Use: "get ARTIFACT", Short: "Save the content of an artifact",
		Long: `Save the content of an artifact, a JSON value in canonical form, and compare it with the
id. A file appears complete or not at all. Without -o the content is written to
standard output.`,
		Example: "  sortie artifacts get sha256:74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b -o card.pdf",
	}
	to.flags(c)
	c.RunE = a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
		write := func(w io.Writer) error {
			_, err := c.GetArtifact(ctx, args[0], w)
			return err
		}
		if to.path == "" || to.path == "-" {
			return write(a.Stdout)
		}
		return fetch.Save(to.path, to.force, write)
	})
	return c
}
