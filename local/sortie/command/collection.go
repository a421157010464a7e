package command

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
	"github.com/sortie-dev/sortie/local/sortie/display"
)

// collectionFlags say which collection is served, and where.
type collectionFlags struct {
	addr         string
	ead, catalog string
	sample       bool
	generate     int
	seed         uint64
	shape        samples.Shape
	ills         []string
	rootIll      string
}

func (a *app) collection() *cobra.Command {
	return group("collection", "Serve collections to export", a.serveCollection())
}

func (a *app) serveCollection() *cobra.Command {
	var f collectionFlags
	names := make([]string, 0, len(samples.Defects()))
	for _, ill := range samples.Defects() {
		names = append(names, string(ill))
	}
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve a collection as the entity API does",
		Long: `Serve a collection as the entity API does, and print the PIs of its roots, which
are what can be exported. Give the URL to "sortie dev --source".

The collection is one of
  --ead DIR         a folder of EAD finding aids
  --catalog DIR     a folder of conversation lists (JSON) and catalog records (XML)
  --generate N      N made-up entities, the same for the same --seed
  --sample          the sample collection

With --json the first line on standard output is one object: url, entities, and
roots with pi, title and entities. Ctrl-C ends it.

Ills for --ill: ` + strings.Join(names, ", "),
		Example: `  sortie collection serve --ead findingaids/
  sortie collection serve --generate 10000 --seed 7 --ill missing=3 --ill slow=10`,
		Args: cobra.NoArgs,
	}
	flags := c.Flags()
	flags.StringVar(&f.addr, "addr", "127.0.0.1:0", "where it listens; port 0 is any free one")
	flags.StringVar(&f.ead, "ead", "", "a folder of EAD finding aids")
	flags.StringVar(&f.catalog, "catalog", "", "a folder of conversation lists and catalog records")
	flags.BoolVar(&f.sample, "sample", false, "the sample collection")
	flags.IntVar(&f.generate, "generate", 0, "so many made-up entities")
	flags.Uint64Var(&f.seed, "seed", 1, "of what is made up")
	flags.IntVar(&f.shape.Fanout, "fanout", 0, "children of a made-up entity; 0 is 10")
	flags.IntVar(&f.shape.TextBytes, "text-bytes", 0, "length of a made-up text; 0 is 600")
	flags.StringArrayVar(&f.ills, "ill", nil, "NAME=COUNT: so many entities have this ill (repeatable)")
	flags.StringVar(&f.rootIll, "root-ill", "", "the ill of the root")
	flags.IntVar(&f.shape.Times, "times", 0, "how often busy and cut answers are ill; 0 is 2")
	flags.DurationVar(&f.shape.Delay, "delay", 0, "of slow answers; 0 is 100ms")
	for _, name := range []string{"ead", "catalog"} {
		if err := c.MarkFlagDirname(name); err != nil {
			panic(err) // the flag was defined above
		}
	}
	c.MarkFlagsOneRequired("ead", "catalog", "sample", "generate")
	c.MarkFlagsMutuallyExclusive("ead", "catalog", "sample", "generate")
	c.RunE = does(func(ctx context.Context, _ []string) error { return a.runServe(ctx, f) })
	return c
}

// load makes the collection.
func (f collectionFlags) load() (*samples.Collection, error) {
	switch {
	case f.ead != "":
		return fromFolder(f.ead, func() (*samples.Collection, error) { return samples.FromEAD(os.DirFS(f.ead)) })
	case f.catalog != "":
		return fromFolder(f.catalog, func() (*samples.Collection, error) { return samples.FromCatalog(os.DirFS(f.catalog)) })
	case f.sample:
		return samples.Sample(), nil
	case f.generate < 1:
		return nil, wrong("--generate needs at least 1 entity")
	}
	shape := f.shape
	shape.Entities, shape.Root, shape.Count = f.generate, samples.Defect(f.rootIll), map[samples.Defect]int{}
	for _, text := range f.ills {
		name, count, _ := strings.Cut(text, "=")
		n, err := strconv.Atoi(count)
		if err != nil {
			return nil, wrong("--ill %s is not of the form NAME=COUNT", text)
		}
		shape.Count[samples.Defect(name)] += n
	}
	c, err := samples.Generate(f.seed, shape)
	if err != nil {
		return nil, wrong("%v", err)
	}
	return c, nil
}

func fromFolder(dir string, read func() (*samples.Collection, error)) (*samples.Collection, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, missing(dir, err)
	}
	if !info.IsDir() {
		return nil, wrong("%s is not a folder", dir)
	}
	return read()
}

func (a *app) runServe(ctx context.Context, f collectionFlags) error {
	c, err := f.load()
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.addr)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w", f.addr, err)
	}
	server := &http.Server{Handler: c.Handler(a.Clock), ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	if err := a.served(c, "http://"+listener.Addr().String()); err != nil {
		return errors.Join(err, server.Close())
	}
	select {
	case err := <-ended:
		return fmt.Errorf("the server has ended: %w", err)
	case <-ctx.Done():
		return server.Close()
	}
}

// served tells where the collection is and what can be exported.
func (a *app) served(c *samples.Collection, url string) error {
	if a.json {
		type root struct {
			PI       string `json:"pi"`
			Title    string `json:"title"`
			Entities int    `json:"entities"`
		}
		roots := []root{}
		for _, r := range c.Roots() {
			roots = append(roots, root(r))
		}
		return a.printLine(map[string]any{"url": url, "entities": c.Len(), "roots": roots})
	}
	if err := a.say("%s\n\n", url); err != nil {
		return err
	}
	t := display.NewTable("ROOT", "ENTITIES", "TITLE")
	for _, r := range c.Roots() {
		t.Row(r.PI, display.Count(int64(r.Entities)), r.Title)
	}
	_, err := t.WriteTo(a.Stdout)
	return err
}
