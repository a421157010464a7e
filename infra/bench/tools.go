package main

import (
	"archive/zip"
	"compress/flate"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// sizes returns the size of a program and of its zip in bytes.
func sizes(program string) (size, zipped int64, err error) {
	text, err := os.ReadFile(program)
	if err != nil {
		return 0, 0, fmt.Errorf("cannot read the program: %w", err)
	}
	counter := &counting{}
	archive := zip.NewWriter(counter)
	archive.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	entry, err := archive.Create("bootstrap")
	if err == nil {
		_, err = entry.Write(text)
	}
	if err == nil {
		err = archive.Close()
	}
	if err != nil {
		return 0, 0, fmt.Errorf("cannot zip the program: %w", err)
	}
	return int64(len(text)), counter.n, nil
}

// counting counts the bytes that are written to it.
type counting struct{ n int64 }

func (c *counting) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

// tools measures the CDK: the synthesis and, with LocalStack, two deployments of the stage
// bench. The second deployment has no changes.
func tools(ctx context.Context, endpoint string) error {
	const stage = "bench"
	inContext := []string{"-c", "stage=" + stage, "-c", "arch=" + runtime.GOARCH, "-c", "outputs=s3", "-c", "retain=false", "-c", "localstack=true"}
	if endpoint != "" {
		inContext[len(inContext)-1] = "localstack=" + endpoint
	}
	run := func(what, tool string, args ...string) error {
		started := now()
		command := exec.CommandContext(ctx, filepath.Join(".cdk", "node_modules", ".bin", tool), append(args, inContext...)...)
		if output, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("%s %s: %w\n%s", tool, strings.Join(args, " "), err, output)
		}
		fmt.Printf("%-36s %6.1f s\n", what, now().Sub(started).Seconds())
		return nil
	}
	fmt.Println()
	if err := run("synthesis", "cdk", "synth", "--quiet", "--output", filepath.Join(".cdk", "bench")); err != nil {
		return err
	}
	if endpoint == "" {
		fmt.Println("(AWS_ENDPOINT_URL is not set: no deployment is measured)")
		return nil
	}
	deploy := []string{"deploy", "--ci", "--require-approval", "never", "--output", filepath.Join(".cdk", "bench")}
	for _, step := range []struct {
		what string
		args []string
	}{
		{"first deployment, LocalStack", deploy},
		{"second deployment, no changes", deploy},
		{"destroy", []string{"destroy", "--force", "--output", filepath.Join(".cdk", "bench")}},
	} {
		if err := run(step.what, "cdklocal", step.args...); err != nil {
			return err
		}
	}
	return nil
}
