//go:build unix

// Sortie-exec runs any program as a worker of Sortie. It sends started, and heartbeats with the
// progress that the program reports. It terminates the program when the task is cancelled,
// uploads its output and its log, and sends completed with the meaning of its exit code.
//
//	sortie-exec [flags] CMD ARG...
//
// "sortie-exec --help" lists the flags and the exit codes. It is one static file that runs in
// an empty image and can be the first process of a container. It needs certificates in the
// image (/etc/ssl/certs) if the control plane uses https.
//
// In the output that it stores and forwards, it masks the secrets of the task: the token,
// presigned URLs, CALLBACK_URL and the bucket's keys.
package main

import (
	"os"

	"github.com/sortie-dev/sortie/shared/sdk/go/worker/supervisor"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker/wrap"
)

func main() {
	// The local system starts this program as the supervisor of a machine, too.
	if len(os.Args) > 1 && os.Args[1] == supervisor.Command {
		os.Exit(supervisor.Main(os.Args[2:]))
	}
	os.Exit(wrap.Main(os.Args[1:], os.Environ()))
}
