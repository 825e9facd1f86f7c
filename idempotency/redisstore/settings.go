package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// weakness is a setting that may lose acknowledged writes.
type weakness struct{ setting, found, rule string }

// primaries calls f for the server, or for each primary of a cluster, one at a time.
func (s *Store) primaries(ctx context.Context, f func(context.Context, *redis.Client) error) error {
	switch c := s.client.(type) {
	case *redis.Client:
		return f(ctx, c)
	case *redis.ClusterClient:
		var mu sync.Mutex
		return c.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
			mu.Lock()
			defer mu.Unlock()
			return f(ctx, node)
		})
	default:
		return wrong("Config.Client", fmt.Sprintf("%T", s.client), "want a *redis.Client, of redis.NewClient or redis.NewFailoverClient, or a *redis.ClusterClient")
	}
}

// checkServer returns an error if the server cannot run the store. Otherwise it returns
// the settings that may lose acknowledged writes.
func checkServer(ctx context.Context, c *redis.Client) ([]weakness, error) {
	info := map[string]string{}
	for _, section := range []string{"server", "replication", "persistence"} {
		text, err := c.Info(ctx, section).Result()
		if err != nil {
			return nil, fmt.Errorf("redisstore: open: INFO %s: %w", section, err)
		}
		for line := range strings.Lines(text) {
			if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
				info[name] = value
			}
		}
	}
	if major, _, _ := strings.Cut(info["redis_version"], "."); len(major) == 0 || len(major) == 1 && major < "7" {
		return nil, wrong("redis_version", strconv.Quote(info["redis_version"]), "want 7.0 or later, whose scripts may write when the memory is full")
	}
	if role := info["role"]; role != "master" {
		return nil, wrong("role", strconv.Quote(role), "the store writes; connect to the primary server")
	}
	var weak []weakness
	if info["aof_enabled"] != "1" {
		weak = append(weak, weakness{"appendonly", "no", "a restart undoes acknowledged writes; set it to yes in the server"})
	}
	for _, want := range []weakness{
		{"appendfsync", "always", "a loss of power may undo acknowledged writes; set it to always in the server"},
		{"no-appendfsync-on-rewrite", "no", "a loss of power during a rewrite may undo acknowledged writes; set it to no in the server"},
		{"maxmemory-policy", "noeviction", "the server may drop records before they expire; set it to noeviction, which refuses new keys instead"},
	} {
		found, err := c.ConfigGet(ctx, want.setting).Result()
		switch value, known := found[want.setting]; {
		case err != nil && ctx.Err() != nil:
			return nil, fmt.Errorf("redisstore: open: CONFIG GET: %w", err)
		case err != nil || !known: // managed services refuse CONFIG GET
			weak = append(weak, weakness{want.setting, "unknown", "CONFIG GET does not show it; " + want.rule})
		case value != want.found:
			weak = append(weak, weakness{want.setting, value, want.rule})
		}
	}
	return weak, nil
}

func wrong(field, found, rule string) error {
	return fmt.Errorf("redisstore: %w", &idempotency.InvalidError{Field: field, Found: found, Rule: rule})
}
