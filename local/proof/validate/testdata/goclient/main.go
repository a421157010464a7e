// Goclient exports one entity through a client that oapi-codegen generated.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
)

func main() {
	if err := export(context.Background(), os.Getenv("SORTIE_URL"), os.Getenv("SORTIE_TOKEN"), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func export(ctx context.Context, url, token, pi string) error {
	authorize := func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+token)
		return nil
	}
	client, err := NewClientWithResponses(url, WithRequestEditorFn(authorize))
	if err != nil {
		return err
	}
	accepted, err := client.ExportWithResponse(ctx, "mods", &ExportParams{}, ExportRequest{Pi: pi})
	if err != nil {
		return err
	}
	if accepted.JSON202 == nil {
		return fmt.Errorf("export: got %s %s, want 202", accepted.Status(), accepted.Body)
	}
	for wait := 20; ; {
		answer, err := client.StatusWithResponse(ctx, accepted.JSON202.TaskId, &StatusParams{Wait: &wait})
		if err != nil {
			return err
		}
		if answer.JSON200 == nil {
			return fmt.Errorf("status: got %s %s, want 200", answer.Status(), answer.Body)
		}
		switch s := answer.JSON200; {
		case s.Status == "processing":
		case s.Status != "success" || s.State != "Completed" || s.OutputFileSize == nil || *s.OutputFileSize == 0 || s.CompletedAt == nil:
			return fmt.Errorf("status: got %s, want a finished export", answer.Body)
		default:
			fmt.Println(s.TaskId, s.Status, *s.OutputFileSize, "bytes")
			return nil
		}
	}
}
