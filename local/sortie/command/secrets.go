package command

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/shared/adapter/secrets"
)

// secretLimit is the size in bytes that Secrets Manager takes (AWS: 65,536).
const secretLimit = 64 << 10

// stageName is what the name of a deployment's stage is made of.
var stageName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,19}$`)

func (a *app) secrets() *cobra.Command {
	return group("secrets", "Fill the secrets of a stage on AWS", a.secretsPut())
}

func (a *app) secretsPut() *cobra.Command {
	stage, file := "", ""
	c := &cobra.Command{
		Use:   "put " + strings.Join(secrets.Kinds(), "|"),
		Short: "Write one of a stage's secrets, from a file or standard input",
		Long: `Write one of the secrets that a stage was deployed with, sortie/STAGE/NAME in AWS
Secrets Manager. Whatever is running takes the new values within five minutes;
those that the other side refuses are read anew within ten seconds.

The document is JSON, read from standard input or from --file, and checked
before it is written:

  clients  {"tokens": ["...", ...]}    bearer tokens of clients; several while one is replaced
  fly      {"token": "..."}            a token that may make machines in the stage's apps
  outputs  {"accountId": "...",        of Cloudflare; or an "endpoint" and a "region"
            "accessKeyId": "...", "secretAccessKey": "...",              both buckets
            "workerAccessKeyId": "...", "workerSecretAccessKey": "..."}  uploads alone

No value is printed, only its fingerprint: the first six digits of its SHA-256.
Account, region and credentials are those of the AWS command line.`,
		Example: "  sortie secrets put fly --stage prod --file fly.json\n" +
			"  pass show sortie/clients | sortie secrets put clients --stage prod",
		Args: cobra.ExactArgs(1), ValidArgs: secrets.Kinds(),
	}
	c.Flags().StringVar(&stage, "stage", "", "the stage, as it was deployed (needed)")
	c.Flags().StringVar(&file, "file", "", "the file with the document; standard input without it")
	for _, err := range []error{c.MarkFlagRequired("stage"), c.MarkFlagFilename("file")} {
		if err != nil {
			panic(err) // the flags were defined above
		}
	}
	c.RunE = does(func(ctx context.Context, args []string) error {
		if !stageName.MatchString(stage) {
			return wrong("--stage %q is not 1 to 20 small letters, digits and hyphens", stage)
		}
		if !slices.Contains(secrets.Kinds(), args[0]) {
			return wrong("there is no secret %q; there are %s", args[0], strings.Join(secrets.Kinds(), ", "))
		}
		text, err := a.document(file)
		if err != nil {
			return err
		}
		document, err := secrets.Parse(args[0], text)
		if err != nil {
			return wrong("the document is not one of %s:\n%w", args[0], err)
		}
		return a.putSecret(ctx, stage, document)
	})
	return c
}

// document reads the file, or standard input where none is named.
func (a *app) document(file string) (text []byte, err error) {
	source := a.Stdin
	if file != "" {
		opened, err := os.Open(file)
		if err != nil {
			return nil, missing(file, err)
		}
		defer func() { _ = opened.Close() }() // it was only read
		source = opened
	}
	text, err = io.ReadAll(io.LimitReader(source, secretLimit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read the document: %w", err)
	case len(text) > secretLimit:
		return nil, wrong("the document has more than %d bytes", secretLimit)
	}
	return text, nil
}

func (a *app) putSecret(ctx context.Context, stage string, document secrets.Document) error {
	cfg, err := a.AWS(ctx)
	if err != nil {
		return fmt.Errorf("cannot find out how to reach AWS: %w", err)
	}
	name, err := secrets.Put(ctx, cfg, stage, document)
	if err != nil {
		return err
	}
	prints := document.Fingerprints()
	if a.json {
		return a.print(map[string]any{"secret": name, "fingerprints": prints})
	}
	a.note("Wrote %s.", name)
	for _, field := range slices.Sorted(maps.Keys(prints)) {
		if err := a.say("%s %s\n", prints[field], field); err != nil {
			return err
		}
	}
	return nil
}
