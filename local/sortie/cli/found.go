//go:build unix

package cli

import (
	"errors"
	"net/http"

	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/twin/s3"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
)

// servers returns the servers of the user on this machine, newest first.
func (a *App) servers() []client.Server {
	folder := stack.ServersFolder(a.Env)
	if folder == "" {
		return nil
	}
	var list []client.Server
	for _, s := range stack.Servers(folder) {
		list = append(list, client.Server{URL: s.URL, Data: s.Data})
	}
	return list
}

// foundToken returns the token in a data folder, or "", and a transport that sends it only to a
// server that proves to be the folder's.
func foundToken(data, url string) (string, http.RoundTripper) {
	if token, transport := stack.Found(data, url); token != "" {
		return token, transport
	}
	return "", nil
}

// serverHint returns the hint for an error of the local system, or "".
func (a *App) serverHint(err error) string {
	switch {
	case errors.Is(err, sqlite.ErrInUse):
		return "stop the other one, or choose another folder with --data"
	case errors.Is(err, stack.ErrRecordsLost):
		return "restore a copy of sortie.db, such as one of \"" + a.Name + " backup\"; for an empty start, move the folder away or choose another one with --data"
	case errors.Is(err, s3.ErrCatalogLost):
		return "restore a copy of s3/catalog.db; to continue without the outputs, move the folder s3 away"
	}
	return ""
}
