package s3_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/sortie-dev/sortie/local/twin/s3"
	"github.com/sortie-dev/sortie/shared/adapter/r2"
	"github.com/sortie-dev/sortie/shared/port"
)

// BenchmarkStart measures the start of a server on an empty folder.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		server, err := s3.Start(b.Context(), config(b.TempDir()))
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := server.Stop(context.Background()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkObject uploads an object as the worker, accepts it, and downloads it. grown-MiB is
// the peak memory of the server beyond that for one small object.
func BenchmarkObject(b *testing.B) {
	small := served(b, 1<<10, 1)
	for _, mebis := range []int64{1, 1024} {
		b.Run(fmt.Sprintf("MiB=%d", mebis), func(b *testing.B) {
			b.SetBytes(mebis << 20)
			peak := served(b, mebis<<20, b.N)
			b.ReportMetric(float64(peak-small)/(1<<20), "grown-MiB")
		})
	}
}

// served runs a server process with n objects of the size. It returns its peak memory in bytes.
func served(b *testing.B, size int64, n int) int64 {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+b.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatalf("the server said %q, %v", url, err)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	cfg := r2.Config{
		Endpoint: strings.TrimSpace(url), AccessKeyID: owner.ID, SecretAccessKey: owner.Secret,
		Uploads: "uploads", Accepted: "kept", HTTP: &http.Client{Transport: transport},
	}
	outputs, err := r2.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	uploader, err := r2.NewUploader(cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for range n {
		if err := pass(b.Context(), outputs, uploader, size); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	if err := cmd.Process.Kill(); err != nil {
		b.Fatal(err)
	}
	_ = cmd.Wait()
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		b.Fatal("the memory of a process is not available on this system")
	}
	if runtime.GOOS == "darwin" {
		return usage.Maxrss // bytes on this system, KiB elsewhere
	}
	return usage.Maxrss << 10
}

func pass(ctx context.Context, outputs *r2.Outputs, uploader *r2.Uploader, size int64) error {
	const key = "exports/t1/a"
	if err := uploader.Upload(ctx, key, zeroes{}, size, "application/octet-stream"); err != nil {
		return err
	}
	there, err := outputs.Head(ctx, port.Uploads, key)
	if err != nil {
		return err
	}
	if _, err := outputs.Accept(ctx, key, there.ETag); err != nil {
		return err
	}
	body, _, err := outputs.Open(ctx, port.Accepted, key, port.Span{})
	if err != nil {
		return err
	}
	defer body.Close()
	if n, err := io.Copy(io.Discard, body); err != nil || n != size {
		return fmt.Errorf("%d of %d bytes came back: %w", n, size, err)
	}
	return nil
}

type zeroes struct{}

func (zeroes) ReadAt(p []byte, _ int64) (int, error) {
	clear(p)
	return len(p), nil
}
