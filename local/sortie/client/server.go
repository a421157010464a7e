package client

import (
	"context"
	"net"
	"net/url"
	"path/filepath"
	"time"
)

// Server is a local system of the user on this machine, with its data folder.
type Server struct{ URL, Data string }

// LocalURL is the usual address of a local system.
const LocalURL = "http://127.0.0.1:8080"

// Choose returns the address of the server with a data folder in a folder or one above, else of
// the server at LocalURL, else of the only one that runs. If several run and none is chosen, it
// returns these and no address.
func Choose(servers []Server, folder string) (address string, running []Server) {
	for _, s := range servers {
		if listens(s.URL) {
			running = append(running, s)
		}
	}
	for ; folder != ""; folder = filepath.Dir(folder) {
		for _, s := range running {
			if filepath.Dir(s.Data) == folder {
				return s.URL, nil
			}
		}
		if folder == filepath.Dir(folder) {
			break
		}
	}
	for _, s := range running {
		if s.URL == LocalURL {
			return LocalURL, nil
		}
	}
	switch len(running) {
	case 0:
		return LocalURL, nil
	case 1:
		return running[0].URL, nil
	}
	return "", running
}

// listenTime limits the check for a server on this machine.
const listenTime = time.Second

// listens reports whether a program listens at the address.
func listens(address string) bool {
	at, err := url.Parse(address)
	if err != nil {
		return false
	}
	dialer := net.Dialer{Timeout: listenTime}
	conn, err := dialer.DialContext(context.Background(), "tcp", at.Host)
	return err == nil && conn.Close() == nil
}
