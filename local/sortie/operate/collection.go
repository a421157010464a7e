package operate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/samples"
	"github.com/sortie-dev/sortie/local/sortie/argument"
	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// collectionFlags select a collection and an address.
type collectionFlags struct {
	Addr         string
	ead, catalog string
	sample       bool
	generate     int
	seed         uint64
	shape        samples.Shape
	faults       []string
	rootFault    string
}

func (a *Operator) collection() *cobra.Command {
	return cli.Group("collection", "Serve collections to export", a.serveCollection())
}

func defectNames() []string {
	names := make([]string, 0, len(samples.Defects()))
	for _, defect := range samples.Defects() {
		names = append(names, string(defect))
	}
	return names
}

func (a *Operator) serveCollection() *cobra.Command {
	var f collectionFlags
	names := defectNames()
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve a collection with the entity API",
		Long: `Serve a collection with the entity API and print the PIs of its roots, which can
be exported. The URL is the value of "sortie dev --source".

The collection is one of
  --ead DIR         a folder of EAD finding aids; each is an entity, and each of
                    its components with an id. Other files are skipped
  --catalog DIR     a folder of conversation lists (JSON) and catalog records (XML)
  --generate N      N generated entities, the same for the same --seed
  --sample          the sample collection

With --json the first line on standard output is one object: url, entities, roots
with pi, title and entities, and skipped with file and reason. Ctrl-C stops the
server. It is an error if the folder has nothing to serve.

Names for --fault: ` + strings.Join(names, ", "),
		Example: `  sortie collection serve --ead findingaids/
  sortie collection serve --generate 10000 --seed 7 --fault missing=3 --fault slow=10`,
	}
	flags := c.Flags()
	flags.StringVar(&f.Addr, "addr", "127.0.0.1:0", "address of the server; port 0 is any free port")
	flags.StringVar(&f.ead, "ead", "", "a folder of EAD finding aids")
	flags.StringVar(&f.catalog, "catalog", "", "a folder of conversation lists and catalog records")
	flags.BoolVar(&f.sample, "sample", false, "the sample collection")
	flags.IntVar(&f.generate, "generate", 0, "number of generated entities")
	flags.Uint64Var(&f.seed, "seed", 1, "seed of the generator")
	flags.IntVar(&f.shape.Fanout, "fanout", 0, "children of a generated entity; 0 is 10")
	flags.IntVar(&f.shape.TextBytes, "text-bytes", 0, "length of a generated text; 0 is 600")
	flags.StringArrayVar(&f.faults, "fault", nil, "NAME=COUNT: number of entities with this fault (repeatable)")
	flags.StringVar(&f.rootFault, "root-fault", "", "fault of the root")
	flags.IntVar(&f.shape.Times, "times", 0, "number of wrong responses of busy and cut; 0 is 2")
	flags.DurationVar(&f.shape.Delay, "delay", 0, "delay of slow responses; 0 is 100ms")
	for _, name := range []string{"ead", "catalog"} {
		argument.Must(c.MarkFlagDirname(name))
	}
	argument.Complete(c, "fault", "=", names)
	argument.Complete(c, "root-fault", "", names)
	c.RunE = cli.Does(func(ctx context.Context, _ []string) error {
		given := 0
		for _, name := range []string{"ead", "catalog", "sample", "generate"} {
			if flags.Changed(name) {
				given++
			}
		}
		if given != 1 {
			return cli.Wrong("got %d collections, want one of --ead, --catalog, --sample and --generate", given)
		}
		return a.runServe(ctx, f)
	})
	return c
}

// load returns the collection that the flags select.
func (f collectionFlags) load() (*samples.Collection, error) {
	switch {
	case f.ead != "":
		return fromFolder(f.ead, func() (*samples.Collection, error) { return samples.FromEAD(os.DirFS(f.ead)) })
	case f.catalog != "":
		return fromFolder(f.catalog, func() (*samples.Collection, error) { return samples.FromCatalog(os.DirFS(f.catalog)) })
	case f.sample:
		return samples.Sample(), nil
	case f.generate < 1:
		return nil, cli.Wrong("--generate: %d is out of range, want 1 or more", f.generate)
	}
	if f.rootFault != "" {
		if _, err := argument.Choice("--root-fault", f.rootFault, defectNames()); err != nil {
			return nil, err
		}
	}
	shape := f.shape
	shape.Entities, shape.Root, shape.Count = f.generate, samples.Defect(f.rootFault), map[samples.Defect]int{}
	for _, text := range f.faults {
		name, count, _ := strings.Cut(text, "=")
		n, err := strconv.Atoi(count)
		if err != nil {
			return nil, cli.Wrong("--fault: malformed value %q, want NAME=COUNT", text)
		}
		defect, err := argument.Choice("--fault", name, defectNames())
		if err != nil {
			return nil, err
		}
		shape.Count[samples.Defect(defect)] += n
	}
	c, err := samples.Generate(f.seed, shape)
	if err != nil {
		return nil, cli.Wrong("%v", err)
	}
	return c, nil
}

func fromFolder(dir string, read func() (*samples.Collection, error)) (*samples.Collection, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, cli.Missing(dir, err)
	}
	if !info.IsDir() {
		return nil, cli.Wrong("%s is not a folder", dir)
	}
	return read()
}

func (a *Operator) runServe(ctx context.Context, f collectionFlags) error {
	c, err := f.load()
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.Addr)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w", f.Addr, err)
	}
	handler := c.Handler(a.Clock)
	if loopback, err := httpkit.CheckAddress(listener.Addr().String(), "", true); err == nil && loopback {
		handler = httpkit.LoopbackHost(handler)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	if err := a.served(c, "http://"+listener.Addr().String()); err != nil {
		return errors.Join(err, server.Close())
	}
	select {
	case err := <-ended:
		return fmt.Errorf("the server failed: %w", err)
	case <-ctx.Done():
		return server.Close()
	}
}

// served prints the address of the collection and its root entities.
func (a *Operator) served(c *samples.Collection, url string) error {
	if a.JSON {
		type root struct {
			PI       string `json:"pi"`
			Title    string `json:"title"`
			Entities int    `json:"entities"`
		}
		roots := []root{}
		for _, r := range c.Roots() {
			roots = append(roots, root(r))
		}
		return a.PrintLine(map[string]any{"url": url, "entities": c.Len(), "roots": roots, "skipped": c.Skipped()})
	}
	skipped := c.Skipped()
	for _, each := range skipped {
		a.Note("skipped %s: %s", display.Clean(each.File), display.Clean(each.Reason))
	}
	if n := int64(len(skipped)); n > 0 {
		a.Note("%s skipped.", display.Plural(n, "file was", "files were"))
	}
	if err := a.Say("%s\n\n", url); err != nil {
		return err
	}
	t := display.NewTable("ROOT", "ENTITIES", "TITLE")
	for _, r := range c.Roots() {
		t.Row(r.PI, display.Count(int64(r.Entities)), r.Title)
	}
	_, err := t.WriteTo(a.Stdout)
	return err
}
