package sqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
)

// TestAcknowledgedWritesSurviveKill kills a process that writes from many
// goroutines, twice, and checks that every acknowledged number is stored.
func TestAcknowledgedWritesSurviveKill(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sortie.db")
	acknowledged := map[int]bool{}
	for _, until := range []int{200, 500} {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), childPath+"="+path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			n, err := strconv.Atoi(lines.Text())
			if err != nil {
				t.Fatalf("got output %q, want a number", lines.Text())
			}
			if acknowledged[n] = true; len(acknowledged) == until {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = cmd.Wait()
		if len(acknowledged) < until {
			t.Fatalf("got the end of the process after %d numbers", len(acknowledged))
		}
	}
	found := map[int]bool{}
	for _, n := range numbers(t, open(t, path)) {
		found[n] = true
	}
	for n := range acknowledged {
		if !found[n] {
			t.Errorf("got no row %d, which was acknowledged", n)
		}
	}
}

func child(path string) int {
	ctx := context.Background()
	db, err := sqlite.Open(ctx, path)
	if err == nil {
		err = db.Migrate(ctx, "notes", notes)
	}
	if err == nil && os.Getenv(childCompacts) != "" {
		_, err := db.Compact(ctx)
		fmt.Println(err)
		return 0
	}
	first := 0
	if err == nil {
		err = db.Read(ctx, func(tx *sqlite.Tx) error {
			return tx.QueryRow("SELECT coalesce(max(n), 0) + 1 FROM notes").Scan(&first)
		})
	}
	failed := make(chan error)
	for w := range 8 {
		if err != nil {
			break
		}
		go func() {
			for n := first + w; ; n += 8 {
				if err := db.Write(ctx, insert(n, "")); err != nil {
					failed <- err
				}
				fmt.Printf("%d\n", n)
			}
		}()
	}
	if err == nil {
		err = <-failed
	}
	fmt.Println(err)
	return 1
}
