package flymachines

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/sdk/go/worker/supervisor/durable"
)

func (s *Server) hasApp(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.apps[name]
}

func (s *Server) appWire(name string) map[string]any {
	count := 0
	for _, m := range s.all(name) {
		if rec, _ := m.snapshot(); rec.alive() {
			count++
		}
	}
	return map[string]any{
		"id": name, "name": name, "status": "deployed", "machine_count": count, "volume_count": 0, "network": "default",
		"organization": map[string]string{"name": "local", "slug": "local"},
	}
}

func (s *Server) getApp(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("app")
	if !s.hasApp(name) {
		return refuse(http.StatusNotFound, "app not found")
	}
	s.answer(w, http.StatusOK, s.appWire(name))
	return nil
}

func (s *Server) listApps(w http.ResponseWriter, _ *http.Request) error {
	s.mu.Lock()
	names := slices.Sorted(maps.Keys(s.apps))
	s.mu.Unlock()
	apps := make([]map[string]any, 0, len(names))
	for _, name := range names {
		apps = append(apps, s.appWire(name))
	}
	s.answer(w, http.StatusOK, map[string]any{"total_apps": len(apps), "apps": apps})
	return nil
}

// createApp creates an app. The app is persistent: later servers with this folder also have it.
func (s *Server) createApp(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Name    string `json:"name"`
		AppName string `json:"app_name"` // the spelling of Fly's documentation
	}
	if err := readBody(r, &in); err != nil {
		return err
	}
	if in.Name == "" {
		in.Name = in.AppName
	}
	if !validName(in.Name) {
		return refuse(http.StatusUnprocessableEntity, "Validation failed: Name %q is not 1 to 63 of a-z, 0-9 and -", in.Name)
	}
	if err := s.addApp(in.Name); err != nil {
		return err
	}
	s.answer(w, http.StatusCreated, s.appWire(in.Name))
	return nil
}

func (s *Server) addApp(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.apps[name] {
		e := refuse(http.StatusUnprocessableEntity, "Validation failed: Name has already been taken")
		e.code = "name_taken"
		return e
	}
	s.apps[name] = true
	if err := durable.Write(filepath.Join(s.cfg.Dir, appsFile), slices.Sorted(maps.Keys(s.apps))); err != nil {
		delete(s.apps, name)
		return fmt.Errorf("cannot store the app: %w", err)
	}
	return nil
}

func (s *Server) getRegions(w http.ResponseWriter, _ *http.Request) error {
	regions := make([]map[string]any, 0, len(s.cfg.Regions))
	for _, code := range s.cfg.Regions {
		regions = append(regions, map[string]any{"code": code, "name": code, "gateway_available": true})
	}
	s.answer(w, http.StatusOK, map[string]any{"Regions": regions, "Nearest": s.cfg.Regions[0]})
	return nil
}

func (s *Server) getMetadata(w http.ResponseWriter, _ *http.Request, m *machine) error {
	metadata := m.manifestNow().Metadata
	if metadata == nil {
		metadata = map[string]string{}
	}
	s.answer(w, http.StatusOK, metadata)
	return nil
}

// setMetadata sets one key, or removes it for DELETE.
func (s *Server) setMetadata(w http.ResponseWriter, r *http.Request, m *machine) error {
	var in struct {
		Value string `json:"value"`
	}
	if err := readBody(r, &in); err != nil {
		return err
	}
	if err := m.changeMetadata(s.cfg.Clock.Now(), r.PathValue("key"), in.Value, r.Method == http.MethodDelete); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (m *machine) changeMetadata(now time.Time, key, value string, remove bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.rec.alive() {
		return wrongState("update", m.rec.State)
	}
	var config map[string]json.RawMessage
	if err := json.Unmarshal(m.rec.Config, &config); err != nil {
		return fmt.Errorf("cannot read the machine's config: %w", err)
	}
	metadata := maps.Clone(m.manifest.Metadata)
	if metadata == nil {
		metadata = map[string]string{}
	}
	metadata[key] = value
	if remove {
		delete(metadata, key)
	}
	var err error
	if config["metadata"], err = json.Marshal(metadata); err != nil {
		return fmt.Errorf("cannot encode the metadata: %w", err)
	}
	changed, err := json.Marshal(config)
	if err != nil {
		return fmt.Errorf("cannot encode the machine's config: %w", err)
	}
	next := *m.manifest
	next.Metadata = metadata
	err = m.commitLocked(now, func(r *record) error { r.Config = changed; return nil })
	if err == nil {
		m.manifest = &next
	}
	return err
}
