export A=1; B=2 env | grep -c '^[AB]='; echo $LINENO; echo "${BASH_SOURCE[0]##*/} $0" | sed 's/.*\///'
a=5; (( a > 3 )) && echo big; while (( a-- > 3 )); do echo $a; done
s="a b"; t=($s); echo ${#t[@]}; echo "${t[@]/#/x}"; u+=(1); u+=(2); echo ${u[@]} ${!u[@]}
echo $'tab\there'; echo -e "a\nb"; echo -n nonl; echo
printf "%s " {1,2}{a,b}; echo; type f >/dev/null 2>&1 || echo nof; command -v ls >/dev/null && echo hasls
hash tc 2>/dev/null; which sed >/dev/null && echo sed
