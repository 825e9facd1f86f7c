package canonicaljson_test

import (
	"testing"

	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
)

// Benchmarks against other JSON libraries are in module lab, to keep those libraries out
// of this module's requirements.

func BenchmarkAppend(b *testing.B) {
	compact := []byte(`{"event_id":"014e7a6f-1c00-7a9f-8f3b-0c6d9a3c1e55","event_source":"kfm.remote-sensing.landsat-refresh","event_time":"2015-07-10T01:02:03Z","dedupe_key":"landsat:LC08_L2SP_005009_20150710","payload":{"scene_id":"LC08_L2SP_005009_20150710_02_T2","collection":"landsat-c2l2","wrs_path":5,"wrs_row":9,"cloud_cover":54.65,"sun_elevation":40.0015903,"reprocessed":false}}`)
	canonical, err := canonicaljson.Canonicalize(compact)
	if err != nil {
		b.Fatal(err)
	}
	for name, text := range map[string][]byte{"compact": compact, "canonical": canonical} {
		b.Run(name, func(b *testing.B) {
			dst := make([]byte, 0, 2*len(text))
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := canonicaljson.AppendStrict(dst, text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppendValue(b *testing.B) {
	dst := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := canonicaljson.AppendValue(dst, &sampleEvent); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendNumber(b *testing.B) {
	dst := make([]byte, 0, 64)
	for b.Loop() {
		if _, err := canonicaljson.AppendNumber(dst, -65.61361699999998); err != nil {
			b.Fatal(err)
		}
	}
}
