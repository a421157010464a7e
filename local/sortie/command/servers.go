package command

import (
	"context"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// server is a local system of the user on this machine, with its data folder.
type server struct{ URL, Data string }

// dataOf returns the data folders of servers.
func dataOf(servers []server) []string {
	folders := make([]string, 0, len(servers)+1)
	for _, s := range servers {
		folders = append(folders, s.Data)
	}
	return folders
}

// chosenURL returns the address of --url or SORTIE_URL. Without them it is the server with a
// data folder in the current folder or one above, else the server at the usual address, else
// the only one that runs.
func (a *app) chosenURL(servers []server) (string, error) {
	if a.url != "" {
		return a.url, nil
	}
	if given, _ := a.Env("SORTIE_URL"); given != "" {
		return given, nil
	}
	var running []server
	for _, s := range servers {
		if listens(s.URL) {
			running = append(running, s)
		}
	}
	if folder, err := os.Getwd(); err == nil {
		for ; ; folder = filepath.Dir(folder) {
			for _, s := range running {
				if filepath.Dir(s.Data) == folder {
					return s.URL, nil
				}
			}
			if folder == filepath.Dir(folder) {
				break
			}
		}
	}
	var list []string
	for _, s := range running {
		if s.URL == serverURL {
			return serverURL, nil
		}
		list = append(list, "  "+s.URL+"  "+s.Data)
	}
	switch len(running) {
	case 0:
		return serverURL, nil
	case 1:
		return running[0].URL, nil
	}
	return "", advised{
		error: wrong("several servers run on this machine, want --url or SORTIE_URL"), code: ExitUsage, hint: strings.Join(list, "\n"),
	}
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
