// A SoapySDR module for the tests: a radio that counts its samples, and loses, delays and fails as it is told.
//
// Told by the device's arguments, beside driver=grebe_test:
//   channels=N  format=CS16    what it is; formats of tests are CS16, CF32, CS8 and CU8
//   time=1                     reads have times, by the count of samples; utc=1: since 1970; 0 begins when it is made
//   drop=EVERY:LENGTH          behind each EVERY samples, LENGTH are lost, and the next read says OVERFLOW
//   hide=1  status=1           ... and nothing says so; ... and readStreamStatus says so
//   short=N                    a read or a write takes 1 to N samples
//   late=N                     what is set holds N samples after the one that is read next, and the device's clock shows that
//   unplug=N  plug=FILE        behind N samples it is gone and FILE removed; it is found only while FILE is there, and refuses the
//                              settings that stand in it
//   gone=error|silent|throw    what a device that is gone says
//   fail=CALL:N                the Nth call of that function throws; random=SEED: one of about forty calls does
//   record=FILE                writes what is sent to FILE.0, FILE.1, ...; calls=FILE: and what was set, a line each
//   underflow=1                every tenth write says so
//   paced=1                    reads come at the rate, and not as fast as they are asked for
//
// Sample K of channel C: CS16 has K's low 15 bits, and the next 9 with C above them; CF32 has K and C; CS8 and CU8 have K's low
// bytes and C. With tag=1, C is the frequency in MHz instead.

#include <SoapySDR/Device.hpp>
#include <SoapySDR/Errors.h>
#include <SoapySDR/Formats.hpp>
#include <SoapySDR/Registry.hpp>
#include <SoapySDR/Time.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

std::string text(const SoapySDR::Kwargs &args, const std::string &key, const std::string &otherwise = "") {
    const auto found = args.find(key);
    return found == args.end() ? otherwise : found->second;
}

long number(const SoapySDR::Kwargs &args, const std::string &key, long otherwise = 0) {
    const auto found = args.find(key);
    return found == args.end() ? otherwise : std::atol(found->second.c_str());
}

class TestRadio : public SoapySDR::Device {
public:
    explicit TestRadio(const SoapySDR::Kwargs &args)
        : args_(args), channels_(size_t(number(args, "channels", 1))), format_(text(args, "format", SOAPY_SDR_CS16)),
          gone_(text(args, "gone", "error")) {
        static uint64_t made = 0;
        const auto seed = uint64_t(number(args, "random"));
        // One that is made again fails elsewhere.
        if (seed) random_ = seed * 0x9e3779b97f4a7c15u + ++made;
        const auto drop = text(args, "drop");
        if (!drop.empty()) {
            drop_every_ = std::strtoull(drop.c_str(), nullptr, 10);
            drop_length_ = std::strtoull(drop.c_str() + drop.find(':') + 1, nullptr, 10);
        }
        std::ifstream plug(text(args, "plug"));
        for (std::string what; plug >> what;) refuses_.insert(what);
        const auto fail = text(args, "fail");
        if (!fail.empty()) {
            fail_call_ = fail.substr(0, fail.find(':'));
            fail_at_ = fail.find(':') == std::string::npos ? 1 : std::atoi(fail.c_str() + fail.find(':') + 1);
        }
        if (number(args, "utc")) {
            const auto now = std::chrono::system_clock::now().time_since_epoch();
            base_ns_ = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
        }
    }

    std::string getDriverKey() const override { return "grebe_test"; }
    std::string getHardwareKey() const override { return "counter"; }
    size_t getNumChannels(const int) const override { return channels_; }

    std::vector<std::string> getStreamFormats(const int, const size_t) const override {
        return {SOAPY_SDR_CS16, SOAPY_SDR_CF32, SOAPY_SDR_CS8, SOAPY_SDR_CU8, SOAPY_SDR_CS12};
    }
    std::string getNativeStreamFormat(const int, const size_t, double &full_scale) const override {
        full_scale = 32768;
        return format_;
    }

    std::vector<std::string> listAntennas(const int, const size_t) const override { return {"A", "B"}; }
    void setAntenna(const int, const size_t, const std::string &name) override { set("antenna", name); }
    std::vector<std::string> listGains(const int, const size_t) const override { return {"LNA", "VGA"}; }
    bool hasGainMode(const int, const size_t) const override { return true; }
    void setGainMode(const int, const size_t, const bool automatic) override {
        set("gain_mode", automatic ? "auto" : "manual");
        automatic_ = automatic;
    }
    bool getGainMode(const int, const size_t) const override { return automatic_; }
    void setGain(const int, const size_t, const double db) override {
        set("gain", std::to_string(db));
        if (db < 0 || db > 60) throw std::runtime_error("gain out of range");
        gain_ = db;
    }
    void setGain(const int, const size_t, const std::string &name, const double db) override {
        set("gain." + name, std::to_string(db));
    }
    double getGain(const int, const size_t) const override { return gain_; }
    SoapySDR::Range getGainRange(const int, const size_t) const override { return {0, 60}; }

    std::vector<std::string> listFrequencies(const int, const size_t) const override { return {"RF"}; }
    void setFrequency(const int, const size_t, const double hz, const SoapySDR::Kwargs &) override {
        set("frequency", std::to_string(hz));
        if (hz < 1e6 || hz > 6e9) throw std::runtime_error("cannot tune there");
        // What is under way was received before.
        changes_[next_ + uint64_t(number(args_, "late"))] = hz;
        frequency_ = hz;
    }
    double getFrequency(const int, const size_t) const override { return frequency_; }
    SoapySDR::RangeList getFrequencyRange(const int, const size_t) const override { return {{1e6, 6e9}}; }

    void setSampleRate(const int, const size_t, const double hz) override {
        set("rate", std::to_string(hz));
        if (hz > 20e6) throw std::runtime_error("too fast");
        // Whole kilohertz, as the dividers of real ones.
        rate_ = double(long(hz / 1e3)) * 1e3;
    }
    double getSampleRate(const int, const size_t) const override {
        may_fail("getSampleRate");
        return rate_;
    }
    SoapySDR::RangeList getSampleRateRange(const int, const size_t) const override { return {{1e3, 20e6}}; }
    void setBandwidth(const int, const size_t, const double hz) override { set("bandwidth", std::to_string(hz)); }
    double getBandwidth(const int, const size_t) const override { return 1.5e6; }
    void setFrequencyCorrection(const int, const size_t, const double ppm) override { set("ppm", std::to_string(ppm)); }
    void setClockSource(const std::string &source) override { set("clock", source); }
    void setTimeSource(const std::string &source) override { set("time", source); }
    void writeSetting(const std::string &key, const std::string &value) override { set("setting." + key, value); }
    bool hasHardwareTime(const std::string &) const override { return number(args_, "time") != 0; }
    long long getHardwareTime(const std::string &) const override {
        return time_ns(next_ + uint64_t(number(args_, "late")));
    }

    SoapySDR::Stream *setupStream(const int direction, const std::string &format, const std::vector<size_t> &channels,
                                  const SoapySDR::Kwargs &stream_args) override {
        set("stream", format);
        for (const auto &pair : stream_args) set("stream." + pair.first, pair.second);
        stream_format_ = format;
        stream_channels_ = channels;
        for (const auto channel : channels) {
            if (channel >= channels_) throw std::runtime_error("no such channel");
            const auto file = text(args_, "record");
            if (direction == SOAPY_SDR_TX && !file.empty()) {
                sent_.emplace_back(file + "." + std::to_string(channel), std::ios::binary | std::ios::app);
            }
        }
        return reinterpret_cast<SoapySDR::Stream *>(this);
    }
    void closeStream(SoapySDR::Stream *) override {
        set("close", "");
        sent_.clear();
    }
    int activateStream(SoapySDR::Stream *, const int, const long long, const size_t) override {
        set("activate", "");
        is_active_ = true;
        began_ = std::chrono::steady_clock::now();
        return 0;
    }
    int deactivateStream(SoapySDR::Stream *, const int, const long long) override {
        is_active_ = false;
        return 0;
    }

    int readStream(SoapySDR::Stream *, void *const *buffs, const size_t elements, int &flags, long long &time,
                   const long timeout_us) override {
        may_fail("readStream");
        flags = 0;
        if (!is_active_) return wait(timeout_us);
        if (is_gone()) return say_gone(timeout_us);
        if (is_lost_ && !number(args_, "hide") && !number(args_, "status")) {
            is_lost_ = false;
            return SOAPY_SDR_OVERFLOW;
        }
        const size_t samples = limited(elements);
        if (number(args_, "paced")) {
            const std::chrono::duration<double> due(double(read_ + samples) / rate_);
            std::this_thread::sleep_until(began_ + std::chrono::duration_cast<std::chrono::nanoseconds>(due));
        }
        for (size_t at = 0; at < samples; ++at, ++next_) {
            while (!changes_.empty() && changes_.begin()->first <= next_) {
                tag_ = changes_.begin()->second;
                changes_.erase(changes_.begin());
            }
            for (size_t place = 0; place < stream_channels_.size(); ++place) {
                put(buffs[place], at, next_, stream_channels_[place]);
            }
        }
        if (number(args_, "time")) {
            flags |= SOAPY_SDR_HAS_TIME;
            time = time_ns(next_ - samples);
        }
        read_ += samples;
        since_drop_ += samples;
        if (drop_every_ && since_drop_ >= drop_every_) {
            since_drop_ = 0;
            next_ += drop_length_;
            is_lost_ = true;
        }
        return int(samples);
    }

    int writeStream(SoapySDR::Stream *, const void *const *buffs, const size_t elements, int &flags, const long long,
                    const long timeout_us) override {
        may_fail("writeStream");
        if (flags & SOAPY_SDR_END_BURST) {
            set("end", "");
            return 0;
        }
        if (is_gone()) return say_gone(timeout_us);
        if (number(args_, "underflow") && ++writes_ % 10 == 0) return SOAPY_SDR_UNDERFLOW;
        const size_t samples = limited(elements);
        for (size_t place = 0; place < sent_.size(); ++place) {
            sent_[place].write(static_cast<const char *>(buffs[place]), long(samples * SoapySDR::formatToSize(stream_format_)));
            sent_[place].flush();
        }
        read_ += samples;
        return int(samples);
    }

    int readStreamStatus(SoapySDR::Stream *, size_t &, int &, long long &, const long) override {
        if (!number(args_, "status")) return SOAPY_SDR_NOT_SUPPORTED;
        if (!is_lost_) return SOAPY_SDR_TIMEOUT;
        is_lost_ = false;
        return SOAPY_SDR_OVERFLOW;
    }

private:
    void set(const std::string &what, const std::string &value) {
        const auto file = text(args_, "calls");
        if (!file.empty()) std::ofstream(file, std::ios::app) << what << "=" << value << "\n";
        may_fail(what);
        if (refuses_.count(what)) throw std::runtime_error("it has no " + what + " now");
    }

    void may_fail(const std::string &call) const {
        if (random_) {
            random_ ^= random_ << 13, random_ ^= random_ >> 7, random_ ^= random_ << 17;
            if (random_ % 40 == 0) throw std::runtime_error("failed by chance in " + call);
        }
        if (call == fail_call_ && ++fail_calls_ == fail_at_) throw std::runtime_error("failed on purpose in " + call);
    }

    bool is_gone() {
        const auto after = number(args_, "unplug");
        if (after && read_ >= uint64_t(after) && !was_gone_) {
            was_gone_ = true;
            unlink(text(args_, "plug").c_str());
        }
        return was_gone_;
    }

    int say_gone(long timeout_us) const {
        if (gone_ == "throw") throw std::runtime_error("LIBUSB_ERROR_NO_DEVICE");
        return gone_ == "silent" ? wait(timeout_us) : SOAPY_SDR_STREAM_ERROR;
    }

    static int wait(long timeout_us) {
        std::this_thread::sleep_for(std::chrono::microseconds(timeout_us));
        return SOAPY_SDR_TIMEOUT;
    }

    size_t limited(size_t elements) {
        const auto limit = number(args_, "short");
        if (limit) {
            turn_ = turn_ * 6364136223846793005u + 1442695040888963407u;
            elements = std::min(elements, size_t(1 + (turn_ >> 33) % uint64_t(limit)));
        }
        return elements;
    }

    long long time_ns(uint64_t sample) const { return base_ns_ + SoapySDR::ticksToTimeNs((long long)sample, rate_); }

    void put(void *to, size_t at, uint64_t k, size_t channel) const {
        const auto c = number(args_, "tag") ? size_t(tag_ / 1e6) : channel;
        if (stream_format_ == SOAPY_SDR_CF32) {
            float *place = static_cast<float *>(to) + 2 * at;
            place[0] = float(k), place[1] = float(c);
        } else if (stream_format_ == SOAPY_SDR_CS16) {
            int16_t *place = static_cast<int16_t *>(to) + 2 * at;
            place[0] = int16_t(k & 0x7fff), place[1] = int16_t((k >> 15 & 0x1ff) | c << 9);
        } else {
            uint8_t *place = static_cast<uint8_t *>(to) + 2 * at;
            place[0] = uint8_t(k), place[1] = uint8_t((k >> 8) + c);
        }
    }

    const SoapySDR::Kwargs args_;
    const size_t channels_;
    const std::string format_, gone_;
    std::string fail_call_, stream_format_;
    std::vector<size_t> stream_channels_;
    std::vector<std::ofstream> sent_;
    std::map<uint64_t, double> changes_;
    std::set<std::string> refuses_;
    double rate_ = 1e6, frequency_ = 100e6, gain_ = 10, tag_ = 100e6;
    bool automatic_ = false, is_active_ = false, is_lost_ = false, was_gone_ = false;
    uint64_t next_ = 0, read_ = 0, since_drop_ = 0, drop_every_ = 0, drop_length_ = 0, writes_ = 0, turn_ = 1;
    long long base_ns_ = 0;
    std::chrono::steady_clock::time_point began_;
    int fail_at_ = 0;
    mutable int fail_calls_ = 0;
    mutable uint64_t random_ = 0;
};

SoapySDR::KwargsList find(const SoapySDR::Kwargs &args) {
    const auto plug = text(args, "plug", std::getenv("GREBE_TEST_PLUG") ? std::getenv("GREBE_TEST_PLUG") : "");
    if (!plug.empty() && access(plug.c_str(), F_OK) != 0) return {};
    SoapySDR::Kwargs found = args;
    found["driver"] = "grebe_test";
    found["serial"] = text(args, "serial", "77");
    found["label"] = "A radio that counts";
    if (found["serial"] != "77") return {};
    return {found};
}

SoapySDR::Device *make(const SoapySDR::Kwargs &args) {
    // As drivers do: they are asked also where they found nothing.
    if (find(args).empty()) throw std::runtime_error("no such radio");
    return new TestRadio(args);
}

const SoapySDR::Registry registered("grebe_test", &find, &make, SOAPY_SDR_ABI_VERSION);

} // namespace
