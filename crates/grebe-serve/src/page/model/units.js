// Steps of 1-2-5, numbers as engineers read them, and ticks of axes: the same labels as the window's and the terminal's.

/** The smallest of ..., 1, 2, 5, 10, ... that is at least `value`; 1 where it is no positive number. @param {number} value */
export function step125Up(value) {
  const steps = stepsAround(value);
  // A millionth below counts as reached: 0.1 + 0.2 is not a new step.
  return steps.find((step) => step >= value * (1 - 1e-6)) ?? 1;
}

/** The largest of ..., 1, 2, 5, 10, ... that is at most `value`; 1 where it is no positive number. @param {number} value */
export function step125Down(value) {
  const steps = stepsAround(value).reverse();
  return steps.find((step) => step <= value * (1 + 1e-6)) ?? 1;
}

/** @param {number} value @returns {number[]} */
function stepsAround(value) {
  if (!(value > 0 && Number.isFinite(value))) return [];
  const exponent = Math.floor(Math.log10(value));
  return [-1, 0, 1].flatMap((near) => [1, 2, 5].map((digit) => digit * powerOfTen(exponent + near)));
}

/** The smallest step of a clock that is at least so many seconds: up to 10 s of 1-2-5, then to 30 minutes, 12 hours, days. @param {number} seconds */
export function stepTimeUp(seconds) {
  if (!(seconds > 10 && Number.isFinite(seconds))) return step125Up(seconds);
  return STEPS_S.find((step) => step >= seconds * (1 - 1e-6)) ?? DAY_S * step125Up(seconds / DAY_S);
}

/** The largest that is at most so many. @param {number} seconds */
export function stepTimeDown(seconds) {
  if (seconds > DAY_S * 1.5 && Number.isFinite(seconds)) return DAY_S * step125Down(seconds / DAY_S);
  return [...STEPS_S].reverse().find((step) => step <= seconds * (1 + 1e-6)) ?? step125Down(seconds);
}

/**
 * A number with its unit: `25 MS/s`, `1.2 ms`, `-340 mV`; a thousand seconds and more as on a clock, `1:02:05`. Zeros at the end are left out.
 * @param {number} value @param {string} unit @param {number} digits significant ones
 */
export function engineering(value, unit, digits = 3) {
  const space = unit === "" ? "" : " ";
  if (!Number.isFinite(value)) return `--${space}${unit}`;
  let exponent = prefixExponent(value);
  let decimals = decimalsFor(value / powerOfTen(exponent), digits);
  if (Math.abs(roundTo(value / powerOfTen(exponent), decimals)) >= 1000 && exponent < EXPONENT_MAX) {
    exponent += 3;
    decimals = Math.max(digits - 1, 0);
  }
  if (unit === "s" && exponent >= 3 && exponent < 9) {
    const before = Math.trunc(Math.log10(Math.abs(value))) + 1;
    return clockText(value, Math.max(digits - before, 0), true);
  }
  const scaled = roundTo(value / powerOfTen(exponent), decimals);
  while (decimals > 0 && isWhole(scaled * powerOfTen(decimals - 1))) decimals -= 1;
  const prefix = prefixOf(exponent);
  return `${(scaled === 0 ? 0 : scaled).toFixed(decimals)}${prefix === "" ? space : " "}${prefix}${unit}`;
}

/**
 * What a person typed for a quantity of `unit`: a number, perhaps with an SI prefix, perhaps with the unit; seconds also as on a clock; `null`: it means nothing.
 * @param {string} text @param {string} unit @returns {number | null}
 */
export function parseQuantity(text, unit) {
  if (unit === "s" && text.includes(":")) return parseClock(text);
  const found = /^\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(.*?)\s*$/.exec(text);
  if (!found) return null;
  const rest = found[2];
  let prefix = rest;
  if (rest === unit) prefix = "";
  else if (unit !== "" && rest.endsWith(unit)) prefix = rest.slice(0, -unit.length).trimEnd();
  const exponent = EXPONENT_OF_PREFIX[prefix];
  if (exponent === undefined) return null;
  const value = Number(found[1]) * powerOfTen(exponent);
  return Number.isFinite(value) ? value : null;
}

/** Where the lines of an axis lie, and how they are labelled. */
export class Ticks {
  /** At most so many ticks, in steps of 1-2-5. @param {number} low @param {number} high @param {number} countMax */
  static atMost(low, high, countMax) {
    return new Ticks(low, high, step125Up((high - low) / Math.max(countMax, 2)));
  }

  /** The same on an axis of this unit: steps of a clock where it is seconds, and many. @param {number} low @param {number} high @param {number} countMax @param {string} unit */
  static ofUnit(low, high, countMax, unit) {
    const isClock = unit === "s" && isLong(Math.max(Math.abs(low), Math.abs(high)));
    return isClock ? new Ticks(low, high, stepTimeUp((high - low) / Math.max(countMax, 2))) : Ticks.atMost(low, high, countMax);
  }

  /** @param {number} low @param {number} high @param {number} step */
  constructor(low, high, step) {
    this.low = low;
    this.high = high;
    this.step = step > 0 ? step : 1;
  }

  /** Multiples of the step from low to high, at most 1000. @returns {number[]} */
  values() {
    const first = Math.ceil(this.low / this.step - 1e-9);
    const count = Math.floor(this.high / this.step + 1e-9) - first + 1;
    if (!(count > 0)) return [];
    return Array.from({ length: Math.min(count, 1000) }, (_, place) => (first + place) * this.step);
  }

  /** All of an axis in one prefix, or as on a clock, with as many decimals as the step asks for. @param {number} value @param {string} unit */
  label(value, unit) {
    const largest = Math.max(Math.abs(this.low), Math.abs(this.high));
    const stepExponent = Math.floor(Math.log10(this.step) + 1e-9);
    const isOneDigit = isWhole(this.step / powerOfTen(stepExponent));
    const decimalsOf = (/** @type {number} */ exponent) => Math.min(Math.max(exponent - stepExponent + (isOneDigit ? 0 : 1), 0), 12);
    if (unit === "s" && isLong(largest)) return clockText(value, decimalsOf(0), false);
    const exponent = Math.min(Math.max(prefixExponent(this.step), prefixExponent(largest) - 3), EXPONENT_MAX);
    const decimals = decimalsOf(exponent);
    const scaled = value / powerOfTen(exponent);
    const shown = Math.abs(scaled) * powerOfTen(decimals) < 0.5 ? 0 : scaled;
    const prefix = prefixOf(exponent);
    return `${shown.toFixed(decimals)}${unit === "" && prefix === "" ? "" : " "}${prefix}${unit}`;
  }
}

/** Whether a time is read as on a clock: where its seconds would need a prefix. @param {number} seconds */
const isLong = (seconds) => seconds >= 1e3 && seconds < 1e9;

/** Hours, minutes and seconds with so many decimals. @param {number} seconds @param {number} decimalsMax @param {boolean} isShort without zeros at the end */
function clockText(seconds, decimalsMax, isShort) {
  let decimals = Math.min(decimalsMax, 9);
  while (isShort && decimals > 0 && roundTo(seconds, decimals) === roundTo(seconds, decimals - 1)) decimals -= 1;
  // Rounded first, so that 59.9 s become a minute and not 60 s.
  const rounded = Math.abs(roundTo(seconds, decimals));
  const whole = Math.floor(rounded);
  const part = decimals > 0 ? (rounded - whole).toFixed(decimals).slice(1) : "";
  const two = (/** @type {number} */ number) => String(number % 60).padStart(2, "0");
  return `${seconds < 0 && rounded > 0 ? "-" : ""}${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60))}:${two(whole)}${part}`;
}

/** `1:02:05.5`, or `2:05`, also of more minutes than an hour has. @param {string} text @returns {number | null} */
function parseClock(text) {
  const found = /^\s*(-?)(?:(\d+):)?(\d+):(\d+(?:\.\d*)?)\s*s?\s*$/.exec(text);
  if (!found) return null;
  const [hours, minutes, seconds] = [Number(found[2] ?? 0), Number(found[3]), Number(found[4])];
  if (seconds >= 60 || (hours > 0 && minutes >= 60)) return null;
  return (found[1] === "-" ? -1 : 1) * (hours * 3600 + minutes * 60 + seconds);
}

const DAY_S = 86_400;
const STEPS_S = [10, 20, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, DAY_S];
const EXPONENT_MAX = 12;
const PREFIXES = ["f", "p", "n", "µ", "m", "", "k", "M", "G", "T"];
/** @type {Record<string, number | undefined>} */
const EXPONENT_OF_PREFIX = { u: -6, "\u03bc": -6, K: 3 };
PREFIXES.forEach((prefix, place) => (EXPONENT_OF_PREFIX[prefix] = place * 3 - 15));

/** @param {number} exponent */
const prefixOf = (exponent) => PREFIXES[(exponent + 15) / 3] ?? "";

/** The power of a thousand that leaves 1 to 999 before the point. @param {number} value */
function prefixExponent(value) {
  if (value === 0 || !Number.isFinite(value)) return 0;
  const exponent = Math.floor(Math.log10(Math.abs(value)) + 1e-12);
  return Math.min(Math.max(Math.floor(exponent / 3) * 3, -15), EXPONENT_MAX);
}

/** @param {number} scaled @param {number} digits */
function decimalsFor(scaled, digits) {
  const before = Math.abs(scaled) >= 100 ? 3 : Math.abs(scaled) >= 10 ? 2 : 1;
  return Math.max(digits - before, 0);
}

/** @param {number} value @param {number} decimals */
function roundTo(value, decimals) {
  const scale = powerOfTen(decimals);
  // Away from zero at a half, as Rust rounds.
  return (Math.sign(value) * Math.round(Math.abs(value) * scale)) / scale;
}

/** @param {number} value */
const isWhole = (value) => Math.abs(value - Math.round(value)) < 1e-6;

/** Exact where a decimal literal would be. @param {number} exponent */
const powerOfTen = (exponent) => (exponent >= 0 ? 10 ** exponent : 1 / 10 ** -exponent);
