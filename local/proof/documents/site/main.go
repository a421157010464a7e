// Site writes the documents of the repository as a static site. It runs in the root of the
// repository.
//
//	go run ./local/proof/documents/site -out out/docs
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sortie-dev/sortie"
	"github.com/sortie-dev/sortie/functions/console/docs"
)

func main() {
	out := flag.String("out", "out/docs", "folder of the site")
	flag.Parse()
	if err := write(*out); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

func write(out string) error {
	files := sortie.Documents()
	const deploy = "infra/README.md" // of another module
	text, err := os.ReadFile(deploy)
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", deploy, err)
	}
	files[deploy] = text
	if err := os.MkdirAll(out, 0o750); err != nil {
		return fmt.Errorf("cannot create the folder: %w", err)
	}
	site := docs.New(files)
	for _, name := range site.Names() {
		content, _, err := site.Page(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(out, name), content, 0o600); err != nil {
			return fmt.Errorf("cannot write the page: %w", err)
		}
	}
	fmt.Printf("%d files in %s\n", len(site.Names()), out)
	return nil
}
