// Generate writes the objects and the plain calls of the Go client from the OpenAPI document.
// Its test fails if they are out of date.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func main() {
	dir := "shared/sdk/go"
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	files, err := generate(contract.OpenAPI())
	for name, text := range files {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), text, 0o644) //nolint:gosec // source code
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}
